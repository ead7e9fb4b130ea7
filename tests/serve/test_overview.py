"""Facets and duplicates over HTTP: what they say, that they are computed once per state, and their limits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from rmsh.library import Library
from rmsh.serve import overview
from rmsh.serve.limits import ProblemError
from rmsh.serve.overview import Overview
from rmsh.serve.schemas import Grouping

Serve = Callable[..., TestClient]


@pytest.fixture
def own(photographs: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(photographs, tmp_path / "own"))


def test_facets_are_counted_with_the_security_headers(serve: Serve, photographs: Path) -> None:
    answer = serve(folder=photographs).get("/api/facets")
    found = answer.json()
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert [facet["name"] for facet in found["facets"]] == ["label", "camera", "keyword", "rating"]
    assert found["facets"][1] == {
        "name": "camera",
        "values": [{"value": "FUJI X", "count": 47}, {"value": "Canon", "count": 16}],
        "more": False,
    }
    assert (found["photos"], found["months"][0]) == (64, {"value": "2015-01", "count": 1})


def test_a_library_without_facts_has_labels_only(client: TestClient) -> None:
    found = client.get("/api/facets").json()
    assert ([facet["name"] for facet in found["facets"]], found["photos"], found["months"]) == (["label"], 0, [])


def test_more_values_than_are_listed_are_announced(
    serve: Serve, photographs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MOST_VALUES", 2)
    (labels, cameras, *_) = serve(folder=photographs).get("/api/facets").json()["facets"]
    assert (len(labels["values"]), labels["more"], cameras["more"]) == (2, True, False)


@pytest.mark.parametrize(("path", "name"), [("/api/facets", "facets_of"), ("/api/duplicates", "groups_in")])
def test_they_are_computed_once_until_the_library_changes(
    path: str, name: str, *, serve: Serve, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Any] = []
    compute = getattr(overview, name)
    monkeypatch.setattr(overview, name, lambda given: computed.append(given) or compute(given))
    client = serve(folder=own)
    first = client.get(path).json()
    assert client.get(path).json() == first
    assert len(computed) == 1
    with Library.open(own, writable=True) as library:
        library.remove(["red 7"])
    assert client.get(path).json() != first
    assert len(computed) == 2


def test_duplicates_come_with_the_best_first_and_their_facts(serve: Serve, photographs: Path) -> None:
    found = serve(folder=photographs).get("/api/duplicates").json()
    assert (found["counts"], found["more"]) == ({"copies": 2, "similar": 1, "burst": 1}, False)
    groups = {" and ".join(sorted(image["id"] for image in group["images"])): group for group in found["groups"]}
    assert {names: group["kind"] for names, group in groups.items()} == {
        "red 6 and red 7": "copies",
        "green 6 and green 7": "copies",
        "blue 6 and blue 7": "similar",
        "cyan 6 and cyan 7": "burst",
    }
    best, other = groups["blue 6 and blue 7"]["images"]
    assert (best["width"], best["height"], best["date"]) == (64, 48, "2021-04-01T12:00:00")
    assert (other["width"], other["date"]) == (32, None)
    assert best["bytes"] == (photographs / "blue 6.png").stat().st_size


def test_duplicates_are_listed_by_kind_and_page_by_page(serve: Serve, photographs: Path) -> None:
    client = serve(folder=photographs)
    pages = [client.get("/api/duplicates", params={"k": 3, "skip": skip}).json() for skip in (0, 3)]
    assert [(len(page["groups"]), page["more"]) for page in pages] == [(3, True), (1, False)]
    copies = client.get("/api/duplicates", params={"kind": "copies"}).json()
    assert ([group["kind"] for group in copies["groups"]], copies["counts"]["burst"]) == (["copies", "copies"], 1)
    assert client.get("/api/duplicates", params={"kind": "twins"}).status_code == 422


def test_a_large_group_is_cut_and_counted(serve: Serve, photographs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_MOST_SHOWN", 1)
    group = serve(folder=photographs).get("/api/duplicates").json()["groups"][0]
    assert (group["count"], len(group["images"])) == (2, 1)


def test_a_library_that_does_not_know_its_files_says_so_without_its_path(client: TestClient, colours: Path) -> None:
    answer = client.get("/api/duplicates")
    assert answer.status_code == 404
    assert "rmsh sync" in answer.json()["error"]
    assert str(colours) not in answer.text


def test_more_images_than_a_server_compares_are_refused(
    serve: Serve, photographs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_MOST_COMPARED", 63)
    answer = serve(folder=photographs).get("/api/duplicates")
    assert answer.status_code == 409
    assert all(part in answer.json()["error"] for part in ("64", "63", "rmsh duplicates"))


def test_what_is_not_a_library_has_neither() -> None:
    found = Overview(cast("Any", object()))
    assert found.facets().facets == []
    with pytest.raises(ProblemError) as refused:
        found.duplicates(Grouping())
    assert refused.value.status_code == 404


def test_a_misspelt_label_gets_a_hint(client: TestClient) -> None:
    asked = {"text": "red", "where": "label=redd or label=blue"}
    found = client.get("/api/search", params=asked).json()
    assert (found["hints"], len(found["hits"])) == (["No item has the label redd; did you mean red?"], 4)
    assert client.get("/api/search", params={"text": "red", "where": "label=red"}).json()["hints"] == []
