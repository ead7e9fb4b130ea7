"""The HTTP interface: words, pictures, items and codes find what they should; pages, filters, pictures, metrics."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

from rmsh.codes import Codes, hamming
from rmsh.core.types import Modality
from rmsh.library import Item, Library
from rmsh.library.recode import recode
from rmsh.model import load
from rmsh.pipeline import item_coder
from rmsh.search.query import Query
from rmsh.search.searcher import Searcher
from rmsh.serve.service import SearchService


def _picture(colour: str, kind: str = "PNG", size: tuple[int, int] = (20, 10)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, kind)
    return file.getvalue()


def _post(client: TestClient, content: bytes, **parameters: Any) -> Any:
    return client.post("/api/search", params=parameters, files={"picture": ("../../x.png", content)})


def _ids(found: Any) -> list[str]:
    assert found.status_code == 200, found.text
    return [hit["id"] for hit in found.json()["hits"]]


def _search(client: TestClient, **parameters: Any) -> Any:
    return client.get("/api/search", params=parameters)


def test_words_find_pictures_with_distance_text_and_marked_labels(client: TestClient) -> None:
    found = _search(client, text="reds and blue", k=2).json()
    assert found["query"]["kind"] == "text"
    assert (found["query"]["bits"], found["to"], found["more"]) == (12, "image", True)
    found = _search(client, text="red", k=1, where="label=blue and label=red and not label=green").json()
    match = found["hits"][0].pop("match")
    assert (match["words"], match["labels"]) == (["red"], ["red"])
    assert found["hits"] == [
        {
            "id": "magenta",
            "distance": 4,
            "text": "light that is red and blue",
            "labels": [{"name": "blue", "matches": False}, {"name": "red", "matches": True}],
            "has_picture": True,
            "code": None,
        }
    ]


def test_rank_codes_orders_by_distance_and_has_no_match(client: TestClient) -> None:
    hits = _search(client, text="red", k=8, rank="codes").json()["hits"]
    assert [hit["distance"] for hit in hits] == sorted(hit["distance"] for hit in hits)
    assert {hit["match"] for hit in hits} == {None}
    assert _search(client, text="red", rank="other").status_code == 422


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_a_picture_finds_texts(kind: str, client: TestClient) -> None:
    assert _ids(_post(client, _picture("yellow", kind), to="text", k=1)) == ["yellow"]


def test_a_code_asks_for_the_next_page_without_the_picture(client: TestClient) -> None:
    first = _post(client, _picture("cyan"), k=3).json()
    code = {"code": first["query"]["code"], "model": first["query"]["model"]}
    pages = [_ids(_search(client, **code, k=3, skip=skip)) for skip in (0, 3, 6)]
    assert pages[0] == [hit["id"] for hit in first["hits"]]
    assert sorted(sum(pages, [])) == ["black", "blue", "cyan", "green", "magenta", "red", "white", "yellow"]  # noqa: RUF017
    assert [_search(client, **code, k=4, skip=skip).json()["more"] for skip in (0, 4, 8)] == [True, False, False]


def test_an_item_finds_others_and_shared_labels_are_marked(client: TestClient) -> None:
    found = _search(client, item="yellow", by="text", to="text", k=7).json()
    assert "yellow" not in [hit["id"] for hit in found["hits"]]
    marked = {hit["id"]: [label["name"] for label in hit["labels"] if label["matches"]] for hit in found["hits"]}
    assert (marked["white"], marked["blue"]) == (["green", "red"], [])


@pytest.fixture
def composing(serve: Callable[..., TestClient], joint_colours: Path) -> TestClient:
    return serve(folder=joint_colours)


def test_words_items_and_an_upload_are_added_up_and_subtracted(composing: TestClient) -> None:
    assert composing.get("/api/about").json()["composes"] is True
    assert _ids(_search(composing, text="red + blue", k=1)) == ["magenta"]
    found = _search(composing, item=["red", "blue"], k=1).json()
    assert (found["query"]["kind"], found["hits"][0]["id"]) == ("composed", "magenta")
    assert _ids(_search(composing, item="magenta", minus_item="red", k=1)) == ["blue"]
    assert _ids(_post(composing, _picture("red"), text="blue", k=1)) == ["magenta"]
    assert _ids(_post(composing, _picture("magenta"), text="- red", k=1)) == ["blue"]


def test_the_code_of_an_upload_is_a_part_of_a_later_search(composing: TestClient) -> None:
    query = _post(composing, _picture("red")).json()["query"]
    model = {"model": query["model"]}
    assert _ids(_search(composing, text="blue", code=query["code"], **model, k=1)) == ["magenta"]
    assert _ids(_search(composing, item="magenta", minus_code=query["code"], **model, k=1)) == ["blue"]


def test_a_composed_upload_is_paged_by_its_code(composing: TestClient) -> None:
    first = _post(composing, _picture("red"), text="blue", k=4).json()
    code = {"code": first["query"]["code"], "model": first["query"]["model"]}
    pages = [_ids(_search(composing, **code, k=4, skip=skip)) for skip in (0, 4)]
    assert pages[0] == [hit["id"] for hit in first["hits"]]
    assert len(set(pages[0] + pages[1])) == 8


def test_codes_of_hits_are_told_where_asked_and_fit_their_distance(client: TestClient) -> None:
    found = _search(client, text="red", codes=True, k=8).json()
    query, *hits = [
        Codes.from_values([[1.0] * 12]).packed * 0 + list(bytes.fromhex(code))
        for code in (found["query"]["code"], *(hit["code"] for hit in found["hits"]))
    ]
    assert [int(hamming(query, hit)[0, 0]) for hit in hits] == [hit["distance"] for hit in found["hits"]]


def test_the_codes_of_a_page_are_asked_for_at_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, codes = [], Library.codes

    def counted(library: Library, ids: Iterable[str], modality: Modality) -> Codes:
        asked.append(list(ids))
        return codes(library, asked[-1], modality)

    monkeypatch.setattr(Library, "codes", counted)
    assert asked == [_ids(_search(client, text="red", codes=True, k=5))]
    _ids(_search(client, text="red", k=5))
    assert len(asked) == 1


def test_an_item_is_told_with_its_codes(client: TestClient) -> None:
    told = client.get("/api/item", params={"id": "red"}).json()
    assert (told["id"], told["labels"], told["bits"], told["has_picture"]) == ("red", ["red"], 12, True)
    assert told["image_code"] == told["text_code"] == "4902"


def test_about_tells_what_is_served(client: TestClient) -> None:
    told = client.get("/api/about").json()
    assert (told["name"], told["items"], told["bits"], told["takes"]) == ("colours", 8, 12, ["image", "text"])


def test_who_made_the_pictures_is_credited(client: TestClient, colours: Path) -> None:
    assert client.get("/api/about").json()["credit"] == ""
    (colours / "CREDIT.txt").write_text("Drawn by <b>somebody</b>.\n", encoding="utf-8")
    assert client.get("/api/about").json()["credit"] == "Drawn by <b>somebody</b>."


def test_the_warning_of_the_build_is_told_until_the_library_has_another_model(
    client: TestClient, colours: Path
) -> None:
    for model, told in ((client.get("/api/about").json()["model"], "Beware."), ("another", "")):
        report = {"key": "", "model": model, "warning": "Beware."}
        (colours / "report.json").write_text(json.dumps(report), encoding="utf-8")
        assert client.get("/api/about").json()["warning"] == told


def test_a_picture_is_sent_small_without_what_its_file_hides(client: TestClient, colours: Path) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a secret place"  # turned by a quarter
    Image.new("RGB", (2000, 1000), "red").save(colours / "red.png", "JPEG", exif=exif)
    sent = client.get("/api/picture", params={"id": "red", "side": 320})
    assert sent.headers["content-type"] == "image/jpeg"
    assert b"secret" not in sent.content
    assert Image.open(io.BytesIO(sent.content)).size == (160, 320)


def test_a_browser_that_has_the_picture_is_told_so(client: TestClient, colours: Path) -> None:
    first = client.get("/api/picture", params={"id": "red"})
    again = client.get("/api/picture", params={"id": "red"}, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "304" in client.get("/openapi.json").json()["paths"]["/api/picture"]["get"]["responses"]
    Image.new("RGB", (9, 9), "red").save(colours / "red.png")
    changed = client.get("/api/picture", params={"id": "red"}, headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200


@pytest.mark.parametrize(
    "content", [None, b"", b"no picture", _picture("red")[:45]], ids=["gone", "empty", "words", "cut"]
)
def test_a_picture_that_cannot_be_shown_is_not_found(
    content: bytes | None, *, client: TestClient, colours: Path
) -> None:
    (colours / "red.png").unlink()
    if content is not None:
        (colours / "red.png").write_bytes(content)
    refused = client.get("/api/picture", params={"id": "red"})
    assert refused.status_code == 404
    assert refused.json() == {"error": "The image of this item is missing or unreadable."}


def test_a_link_out_of_the_library_is_not_followed(client: TestClient, colours: Path, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "private.png")
    (colours / "red.png").unlink()
    (colours / "red.png").symlink_to(tmp_path / "private.png")
    assert client.get("/api/picture", params={"id": "red"}).status_code == 404
    assert not client.get("/api/item", params={"id": "red"}).json()["has_picture"]
    assert [hit["id"] for hit in _search(client, text="red", k=1).json()["hits"]] == ["red"]


def test_an_image_that_became_a_loop_of_links_is_not_found(client: TestClient, colours: Path) -> None:
    (colours / "red.png").unlink()
    (colours / "red.png").symlink_to("red.png")
    assert client.get("/api/picture", params={"id": "red"}).status_code == 404
    assert client.get("/api/item", params={"id": "red"}).status_code == 200
    assert _ids(_search(client, text="red", k=1)) == ["red"]


def test_a_library_that_is_recoded_meanwhile_is_searched_on(
    client: TestClient, colours: Path, new_colours: Path
) -> None:
    before = _search(client, text="red", k=1).json()["query"]
    model = load(new_colours)
    with Library.open(colours, writable=True) as library:
        recode(library, model, encode=item_coder(model, image_path=library.picture_path))
    assert _search(client, text="red", k=1).json()["query"]["bits"] == 15
    stale = _search(client, code=before["code"], model=before["model"])
    assert (stale.status_code, "search again" in stale.json()["error"]) == (409, True)


def test_an_upload_is_encoded_again_when_the_library_is_recoded_meanwhile(
    client: TestClient, colours: Path, new_colours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, image, bits = load(new_colours), Searcher.image, []

    def image_then_recode(searcher: Searcher, content: bytes) -> Query:
        query = image(searcher, content)
        bits.append(query.codes.bits)
        if len(bits) == 1:
            with Library.open(colours, writable=True) as library:
                recode(library, model, encode=item_coder(model, image_path=library.picture_path))
        return query

    monkeypatch.setattr(Searcher, "image", image_then_recode)
    assert _ids(_post(client, _picture("cyan"), to="text", k=1)) == ["cyan"]
    assert bits == [12, 15]


def test_items_without_a_picture_or_text_are_served(client: TestClient, colours: Path) -> None:
    with Library.open(colours, writable=True) as library:
        codes = library.codes(["white"], "text")
        library.add([Item("bare")], {"text": Codes(codes.packed, 12, ["bare"])}, model=library.generation().fingerprint)
    found = _search(client, text="red green blue", to="text", k=2).json()["hits"]
    assert [(hit["id"], hit["text"], hit["has_picture"]) for hit in found][1] == ("bare", None, False)


@pytest.mark.parametrize(
    ("parameters", "status", "sentence"),
    [
        ({}, 422, "give text, item or code."),
        ({"minus_item": "red"}, 422, "give text, item or code."),
        ({"text": "a", "item": "red"}, 400, None),
        ({"item": list("123456789")}, 422, "item: List should have at most 8 items after validation, not 9."),
        ({"code": "4902"}, 422, "code and model must be given together."),
        ({"text": "a", "by": "image"}, 422, "by requires item."),
        ({"text": "a", "k": 0}, 422, "k: Input should be greater than or equal to 1."),
        ({"text": "a", "k": 101}, 422, "k: Input should be less than or equal to 100."),
        ({"text": "a", "skip": 10_001}, 422, "skip: Input should be less than or equal to 10000."),
        ({"text": "a", "to": "sound"}, 422, "to: Input should be 'image' or 'text'."),
        ({"text": "a" * 1001}, 422, "text: String should have at most 1000 characters."),
        ({"text": "a" + " - b" * 9}, 422, "text may have at most 8 lone + or -."),
        ({"text": "a", "color": "red"}, 422, "color: Extra inputs are not permitted."),
        ({"code": "zz", "model": "0"}, 422, None),
        ({"text": " "}, 400, "The query text is blank; give at least one word."),
        ({"text": "a", "where": "label"}, 400, None),
        ({"item": "pink"}, 404, "There is no item with this ID."),
        ({"item": "a\0"}, 422, None),
        ({"item": " "}, 422, None),
        ({"code": "ff", "model": "0"}, 409, None),
        ({"code": "ffff", "model": "0"}, 409, None),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_sentence(
    parameters: dict[str, Any], status: int, sentence: str | None, *, client: TestClient
) -> None:
    refused = _search(client, **parameters)
    assert refused.status_code == status, refused.text
    assert list(refused.json()) == ["error"]
    assert sentence in (None, refused.json()["error"])


def test_an_upload_that_is_no_picture_is_refused_in_one_sentence(client: TestClient) -> None:
    refused = _post(client, b"<svg onload=alert(1)>")
    assert refused.status_code == 400
    assert "cannot be read as an image: its format is not recognized" in refused.json()["error"]
    for missing in (client.post("/api/search"), client.post("/api/search", data={"picture": "words"})):
        assert (missing.status_code, "multipart/form-data" in missing.json()["error"]) == (422, True)


def test_a_library_that_is_gone_is_told_without_its_path(client: TestClient, colours: Path) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    (colours / "items.sqlite").rename(colours / "elsewhere")
    for path in ("/healthz", "/api/about", "/api/search?text=red"):
        refused = client.get(path)
        assert refused.status_code == 503
        assert str(colours) not in refused.text


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("UPDATE items SET text = CAST(x'72ff' AS TEXT) WHERE id = 'red'", 503),
        ("DELETE FROM items WHERE id = 'red'", 404),
    ],
    ids=["caption", "row"],
)
def test_a_damaged_item_is_left_out_and_the_rest_is_served(
    statement: str, status: int, *, client: TestClient, colours: Path
) -> None:
    with closing(sqlite3.connect(colours / "items.sqlite")) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for change in (*(f"DROP TRIGGER {name}" for name, _ in triggers), statement, *(sql for _, sql in triggers)):
            connection.execute(change)
    assert "red" not in _ids(_search(client, text="red", k=8))
    assert _ids(_search(client, text="blue", k=1)) == ["blue"]
    for path in ("/api/item", "/api/picture"):
        refused = client.get(path, params={"id": "red"})
        assert (refused.status_code, list(refused.json())) == (status, ["error"])
    assert client.get("/healthz").status_code == 200


def test_a_bug_shows_no_traceback(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchService, "about", lambda self: 1 / 0)
    failed = client.get("/api/about")
    assert (failed.status_code, failed.json()) == (
        500,
        {"error": "Internal server error; see the server log."},
    )
    assert failed.headers["x-content-type-options"] == "nosniff"


def test_the_page_and_its_files_are_there(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert client.get("/static/page.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/nowhere").json() == {"error": "Not found."}
    assert client.put("/api/search").json() == {"error": "Method not allowed."}


@pytest.mark.parametrize("method", ["OPTIONS", "DELETE"])
@pytest.mark.parametrize(
    ("path", "allowed"), [("/api/search", "GET, POST"), ("/api/session", "POST"), ("/static/page.js", "GET, HEAD")]
)
def test_a_method_that_is_not_allowed_is_told_with_those_that_are(
    method: str, path: str, *, allowed: str, client: TestClient
) -> None:
    refused = client.request(method, path)
    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("path", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "/etc/passwd", "..\\app.py", "."])
def test_no_file_beside_the_page_is_sent(path: str, client: TestClient) -> None:
    assert client.get(f"/static/{path}").status_code == 404


def test_metrics_count_requests_by_route_and_time_stages(client: TestClient) -> None:
    _search(client, text="red")
    client.get("/api/item", params={"id": "pink"})
    client.get("/made/up")
    text = client.get("/metrics").text
    assert 'rmsh_requests_total{route="/api/search",status="200"} 1.0' in text
    assert 'rmsh_requests_total{route="/api/item",status="404"} 1.0' in text
    assert 'rmsh_requests_total{route="none",status="404"} 1.0' in text
    for stage in ("wait", "encode text", "search", "describe"):
        assert f'rmsh_stage_seconds_count{{stage="{stage}"}} 1.0' in text
    assert "rmsh_items 8.0" in text
    assert "made/up" not in text


def test_every_address_is_described_with_its_types(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert sorted(described["paths"]) == [
        "/api/about",
        "/api/duplicates",
        "/api/facets",
        "/api/item",
        "/api/picture",
        "/api/search",
        "/api/session",
        "/healthz",
    ]
    answer = described["paths"]["/api/search"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/Found"}
    assert client.get("/docs").status_code == 404


def test_warming_up_says_what_cannot_be_used(colours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Searcher.open(colours) as searcher:
        assert SearchService(searcher, name="colours").warm_up() == []
        config = colours / "model" / "config.json"
        config.write_text(config.read_text().replace('"bag-of-words"', '"no-such-encoder"'))
    with Searcher.open(colours) as searcher:
        (problem,) = SearchService(searcher, name="colours").warm_up()
    assert str(config) in problem
