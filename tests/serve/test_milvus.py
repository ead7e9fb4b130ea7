"""A library on a Milvus server, searched and served by its address: what the folder answers, with its pictures."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from rmsh.cli.main import run
from rmsh.library import Library
from rmsh.milvus.collection import Collection
from rmsh.milvus.push import push
from rmsh.milvus.table import Table
from rmsh.search.searcher import Searcher
from rmsh.serve.app import create_app
from rmsh.serve.security import Access
from rmsh.serve.service import SearchService

pytestmark = pytest.mark.milvus


@pytest.fixture(scope="module")
def address(many_colours: Path, new_address: Callable[[], str]) -> str:
    """Where the colours were pushed to, when readers that do not wait see all of them."""
    made = new_address()
    with Library.open(many_colours) as library:
        push(library, made)
    with Collection.open(made, many_colours / "model") as reader:
        while reader.count() < 64:
            pass
    return made


def _client(searcher: Searcher) -> TestClient:
    app = create_app(SearchService(searcher, name="colours"), Access())
    return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def clients(address: str, many_colours: Path) -> Iterator[list[TestClient]]:
    """Clients of two servers: of the collection, and of the folder."""
    opened = Searcher.open(address, model=many_colours / "model", images=many_colours)
    with opened as collection, Searcher.open(many_colours) as folder:
        yield [_client(collection), _client(folder)]


@pytest.fixture
def client(clients: list[TestClient]) -> TestClient:
    return clients[0]


@pytest.mark.parametrize(
    "asked",
    [
        {"text": "red and blue", "k": 8},
        {"text": "red and blue", "k": 8, "to": "text"},
        {"text": "green", "k": 16, "where": "label=red and not label=blue"},
        {"item": "white 3", "by": "text", "k": 7, "to": "text"},
        {"text": "blue", "k": 8, "codes": True},
    ],
    ids=str,
)
def test_the_address_answers_as_the_folder_does(clients: list[TestClient], asked: dict[str, Any]) -> None:
    best, expected = (client.get("/api/search", params=asked).json() for client in clients)
    assert best == expected
    ours, theirs = (client.get("/api/search", params=asked | {"rank": "codes"}).json() for client in clients)
    assert [hit["distance"] for hit in ours["hits"]] == [hit["distance"] for hit in theirs["hits"]]
    for found in (ours, theirs):  # which of equally distant items come first is the server's choice
        found["hits"].sort(key=lambda hit: (hit["distance"], hit["id"]))
    assert ours == theirs


def test_the_codes_of_a_page_are_one_question_to_the_server(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, query = [], Table.query

    def counted(table: Table, where: str, fields: Sequence[str], **options: Any) -> Any:
        asked.append(where)
        return query(table, where, fields, **options)

    monkeypatch.setattr(Table, "query", counted)
    found = client.get("/api/search", params={"text": "blue", "k": 24, "codes": True, "rank": "codes"}).json()["hits"]
    assert (len(asked), len(found)) == (1, 24)
    assert all(hit["code"] and hit["id"] in asked[0] for hit in found)


def test_a_picture_finds_texts_page_by_page(client: TestClient) -> None:
    file = io.BytesIO()
    Image.new("RGB", (9, 9), "cyan").save(file, "PNG")
    first = client.post("/api/search", params={"to": "text", "k": 40}, files={"picture": file.getvalue()}).json()
    assert {hit["id"].split()[0] for hit in first["hits"][:8]} == {"cyan"}
    code = {"code": first["query"]["code"], "model": first["query"]["model"], "to": "text", "k": 40}
    rest = client.get("/api/search", params=code | {"skip": 40}).json()
    assert (first["more"], rest["more"], len(rest["hits"])) == (True, False, 24)


def test_pictures_are_shown_from_their_folder(client: TestClient) -> None:
    assert client.get("/api/search", params={"text": "red", "k": 1}).json()["hits"][0]["has_picture"]
    sent = client.get("/api/picture", params={"id": "red 1"})
    assert (sent.status_code, sent.headers["content-type"]) == (200, "image/jpeg")
    red, green, blue = np.asarray(Image.open(io.BytesIO(sent.content)))[24, 32]
    assert (red > 200, green < 60, blue < 60) == (True, True, True)


def test_without_their_folder_no_picture_is_promised(address: str, many_colours: Path) -> None:
    with Searcher.open(address, model=many_colours / "model") as searcher:
        client = _client(searcher)
        assert not client.get("/api/search", params={"text": "red", "k": 1}).json()["hits"][0]["has_picture"]
        assert client.get("/api/picture", params={"id": "red 1"}).status_code == 404


def test_what_is_served_and_that_it_is_well(client: TestClient) -> None:
    told = client.get("/api/about").json()
    assert (told["items"], told["bits"], told["takes"]) == (64, 12, ["image", "text"])
    assert client.get("/healthz").json() == {"status": "ok"}
    assert b"rmsh_items 64.0" in client.get("/metrics").content


def test_who_made_the_pictures_is_credited_from_their_folder(client: TestClient, many_colours: Path) -> None:
    credit = many_colours / "CREDIT.txt"
    credit.write_text("Drawn by somebody.\n")
    told = client.get("/api/about").json()["credit"]
    credit.unlink()
    assert told == "Drawn by somebody."


def test_what_a_collection_does_not_know_is_left_out(client: TestClient) -> None:
    assert client.get("/api/facets").json() == {"photos": 0, "facets": [], "months": []}
    assert client.get("/api/duplicates").status_code == 404
    assert client.get("/api/search", params={"text": "red", "where": "label=redd"}).json()["hints"] == []


def test_a_filter_by_words_is_refused_in_words(client: TestClient) -> None:
    refused = client.get("/api/search", params={"text": "red", "where": 'text="light"'})
    assert refused.status_code == 400
    assert "text" in refused.json()["error"]


def test_the_command_searches_an_address(address: str, many_colours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", address, "red", "-k", "8", "--model", str(many_colours / "model"), "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert {(hit["id"].split()[0], hit["distance"]) for hit in hits} == {("red", 0)}
    assert run(["search", address, "red"]) == 2
    assert "is an address" in capsys.readouterr().err


def test_the_command_serves_an_address(address: str, many_colours: Path) -> None:
    words = ["serve", address, "--model", str(many_colours / "model"), "--images", str(many_colours)]
    command = [sys.executable, "-m", "rmsh", *words, "--port", "0", "--json", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            with urllib.request.urlopen(f"{url}api/search?text=red+and+blue&k=1") as answer:  # noqa: S310
                (hit,) = json.load(answer)["hits"]
            with urllib.request.urlopen(f"{url}api/picture?id={quote(hit['id'])}") as answer:  # noqa: S310
                picture = Image.open(io.BytesIO(answer.read()))
        finally:
            process.kill()
    assert (hit["id"].split()[0], hit["distance"], picture.size) == ("magenta", 0, (64, 48))
