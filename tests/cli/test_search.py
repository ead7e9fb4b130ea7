"""`rmsh search`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from rmsh.cli.main import run

Capture = pytest.CaptureFixture[str]


def _json(capsys: Capture, *words: str | Path) -> dict[str, Any]:
    assert run(["search", *map(str, words), "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return dict(json.loads(out))


def test_words_find_images(colours: Path, capsys: Capture) -> None:
    found = _json(capsys, colours, "red and blue", "-k", "1")
    (hit,) = found["hits"]
    assert found["to"] == "images"
    match = hit.pop("match")
    assert (match["words"], match["labels"], match["image"]) == (["red", "blue"], ["blue", "red"], 1.0)
    assert hit == {
        "distance": 0,
        "id": "magenta",
        "labels": ["blue", "red"],
        "text": "light that is red and blue",
        "picture": "magenta.png",
    }


@pytest.mark.parametrize(
    ("options", "to"), [([], "images"), (["--to", "texts"], "texts"), (["--to", "image"], "images")], ids=str
)
def test_an_image_finds_images_unless_texts_are_wanted(
    options: list[str], to: str, *, colours: Path, tmp_path: Path, capsys: Capture
) -> None:
    Image.new("RGB", (4, 4), "yellow").save(tmp_path / "q.png")
    found = _json(capsys, colours, "--image", tmp_path / "q.png", "-k", "1", *options)
    assert (found["to"], found["hits"][0]["id"]) == (to, "yellow")


def test_similar_items_are_found_with_a_filter_page_by_page(colours: Path, capsys: Capture) -> None:
    words = [colours, "--like", "white", "--to", "texts", "--where", "label=red and not label=green", "-k", "1"]
    pages = [_json(capsys, *words, "--skip", str(skip))["hits"] for skip in (0, 1, 2)]
    assert [[hit["id"] for hit in page] for page in pages] == [["magenta"], ["red"], []]


def test_an_image_words_and_items_are_added_up_and_subtracted(
    joint_colours: Path, tmp_path: Path, capsys: Capture
) -> None:
    Image.new("RGB", (4, 4), "red").save(tmp_path / "q.png")
    image, like = ("--image", tmp_path / "q.png"), ("--like", "magenta")
    for parts, first in [
        ((*image, "blue"), "magenta"),
        ((*image, *image, *like, "-k", "1"), "red"),
        ((*like, "--minus", "red"), "blue"),
        ((*like, "--minus-image", tmp_path / "q.png"), "blue"),
        ((*like, "--minus-like", "blue"), "red"),
        (("red + blue - green",), "magenta"),
    ]:
        found = _json(capsys, joint_colours, *parts)
        assert (found["to"], found["hits"][0]["id"]) == ("images", first)


def test_the_table_shows_distance_id_labels_and_text(colours: Path, capsys: Capture) -> None:
    assert run(["search", str(colours), "red", "-k", "2"]) == 0
    shown = capsys.readouterr().out
    expected = ["The 2 best images", "score", "distance", "red", "light that is red"]
    assert [word for word in expected if word not in shown] == []


def test_rank_codes_orders_by_distance_alone(colours: Path, capsys: Capture) -> None:
    found = _json(capsys, colours, "red", "--rank", "codes")["hits"]
    assert [hit["distance"] for hit in found] == sorted(hit["distance"] for hit in found)
    assert {hit["match"] for hit in found} == {None}


def test_a_misspelt_label_gets_a_hint(colours: Path, capsys: Capture) -> None:
    assert run(["search", str(colours), "red", "--where", "label=redd or label=blue", "--json"]) == 0
    out, err = capsys.readouterr()
    (hint,) = json.loads(out)["hints"]
    assert "did you mean red?" in hint
    assert hint in err


def test_no_hits_is_a_sentence(colours: Path, capsys: Capture) -> None:
    assert run(["search", str(colours), "red", "--where", "label=pink"]) == 0
    assert "No images found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give TEXT, --image FILE or --like ID"),
        (["--minus-like", "red"], "give TEXT, --image FILE or --like ID"),
        (["--minus", "red"], "only excludes or subtracts"),
        (["red", "--like", "red"], "a model of colours has no joint space"),
        (["red", "--where", "colour=red"], "The filter cannot be read at character 1"),
        (["red", "-k", "0"], "k = 0"),
        (["red", "--to", "videos"], "--to got 'videos'; give images or texts"),
        (["--like", "pink"], "'pink'"),
        (["--image", "gone.jpg"], "gone.jpg"),
        (["red", "--model", "m"], "has its own model"),
        (["  "], "blank"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, *, colours: Path, capsys: Capture) -> None:
    assert run(["search", str(colours), *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert sentence in shown.err
