"""`rmsh recode`: a library changes to another model, from its raw items."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmsh.cli.main import run
from rmsh.codes import Codes
from rmsh.library import Item, Library
from rmsh.library.maintenance import describe
from rmsh.library.verify import verify
from rmsh.model import Model, load
from rmsh.search.searcher import Searcher

Capture = pytest.CaptureFixture[str]


def test_a_library_is_recoded_from_its_own_texts_and_images(colours: Path, new_colours: Path, capsys: Capture) -> None:
    assert run(["recode", str(colours), "--model", str(new_colours), "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["items"], told["bits"], told["model"]) == (8, 15, load(new_colours).fingerprint)
    assert told["skipped"] == 0
    with Searcher.open(colours) as searcher:
        assert [hit.item.id for hit in searcher.search(searcher.text("green and blue"), 1)] == ["cyan"]
    with Library.open(colours) as library:
        assert describe(library).counts["codes kept of older models"] == 8


def test_a_model_that_cannot_read_the_items_is_refused_and_nothing_changes(
    colours: Path, new_colours: Path, tmp_path: Path, *, capsys: Capture
) -> None:
    Model(load(new_colours).functions, "test", {}).save(tmp_path / "bare")
    assert run(["recode", str(colours), "--model", str(tmp_path / "bare")]) == 2
    assert "give one that was trained on images and texts" in capsys.readouterr().err
    with Library.open(colours) as library:
        assert library.generation().bits == 12


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "gone"], "gone "),
        (["--model", "{model}", "--skipped", "{model}"], "cannot be read or written (Is a directory)"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, *, colours: Path, new_colours: Path, capsys: Capture
) -> None:
    assert run(["recode", str(colours), *(word.format(model=new_colours) for word in words)]) == 2
    assert sentence in capsys.readouterr().err


def test_a_lost_image_is_reported_and_its_item_found_by_its_text(
    colours: Path, new_colours: Path, tmp_path: Path, *, capsys: Capture
) -> None:
    (colours / "red.png").unlink()
    (colours / "blue.png").write_bytes(b"damaged")
    words = ["recode", str(colours), "--model", str(new_colours), "--skipped", str(tmp_path / "skipped.csv")]
    assert run([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert (json.loads(said.out)["items"], json.loads(said.out)["skipped"]) == (8, 2)
    assert "2 pictures were left out, such as red.png (picture: " in said.err
    assert [row.split(",")[2] for row in (tmp_path / "skipped.csv").read_text().splitlines()[1:]] == ["red", "blue"]
    assert verify(colours).problems == ()
    with Searcher.open(colours) as searcher:
        assert [hit.item.id for hit in searcher.search(searcher.text("red"), 1, to="text")] == ["red"]
        assert "red" not in [hit.item.id for hit in searcher.search(searcher.text("red"), 8, to="image")]


def test_a_lost_image_is_an_error_with_strict_and_nothing_changes(
    colours: Path, new_colours: Path, capsys: Capture
) -> None:
    (colours / "red.png").unlink()
    assert run(["recode", str(colours), "--model", str(new_colours), "--strict"]) == 2
    assert "'red'" in capsys.readouterr().err
    with Library.open(colours) as library:
        assert library.generation().bits == 12


def test_an_item_of_a_lost_image_alone_keeps_the_old_codes_until_it_is_removed(
    colours: Path, new_colours: Path, capsys: Capture
) -> None:
    with Library.open(colours, writable=True) as library:
        code = library.codes(["red"], "image")
        only = Item("only", picture="only.png")
        library.add([only], {"image": Codes(code.packed, 12, ["only"])}, model=library.generation().fingerprint)
    words = ["recode", str(colours), "--model", str(new_colours)]
    assert run(words) == 2
    said = capsys.readouterr().err
    assert "1 item was left out, such as only.png (item: " in said
    assert "The new model has no code for 'only'" in said
    with Searcher.open(colours) as searcher:
        assert searcher.model.bits == 12
        assert len(searcher.search(searcher.text("red"), 20)) == 9
    assert run(["remove", str(colours), "only"]) == 0
    assert run(words) == 0
