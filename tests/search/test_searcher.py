"""Searching: words and pictures find each other, pages follow each other, and an exchanged model is noticed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError, InputError
from rmsh.core.types import Modality
from rmsh.features import extract
from rmsh.hash_function import HashFunction, Layer
from rmsh.index.filters import Label
from rmsh.library import Hit, Item, Library
from rmsh.library.recode import recode
from rmsh.model import Model, load
from rmsh.pipeline import item_coder
from rmsh.search.query import Query
from rmsh.search.searcher import Searcher


@pytest.fixture
def searcher(colours: Path) -> Iterator[Searcher]:
    with Searcher.open(colours) as opened:
        yield opened


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.item.id for hit in hits]


@pytest.mark.parametrize(("text", "first"), [("red", "red"), ("Red and GREEN!", "yellow"), ("nothing of it", "black")])
@pytest.mark.parametrize("to", ["image", "text"])
def test_words_find_pictures_and_texts(text: str, first: str, *, to: Modality, searcher: Searcher) -> None:
    (hit,) = searcher.search(searcher.text(text), 1, to=to)
    assert (hit.item.id, hit.distance) == (first, 0)


@pytest.mark.parametrize("to", ["image", "text"])
@pytest.mark.parametrize("opened", [True, False], ids=["open", "by path"])
def test_a_picture_finds_texts_and_pictures(to: Modality, *, opened: bool, searcher: Searcher, tmp_path: Path) -> None:
    picture = Image.new("RGB", (9, 5), "cyan")
    picture.save(tmp_path / "query.png")
    query = searcher.image(picture if opened else tmp_path / "query.png")
    assert _ids(searcher.search(query, 1, to=to)) == ["cyan"]


def test_an_item_is_searched_onward_from_and_is_not_its_own_hit(searcher: Searcher) -> None:
    hits = searcher.search(searcher.item("white"), 3, to="image")
    assert sorted(_ids(hits)) == ["cyan", "magenta", "yellow"]
    assert {hit.distance for hit in hits} == {4}
    assert len(searcher.search(searcher.item("white"), 100)) == 7


def test_the_side_of_an_item_that_is_searched_from_can_be_chosen(searcher: Searcher) -> None:
    assert searcher.item("red", by="text").codes.packed.tolist() == searcher.text("red").codes.packed.tolist()


def test_pages_follow_each_other_without_gap_or_repetition(searcher: Searcher) -> None:
    query = searcher.item("red")
    pages = [_ids(searcher.search(query, 3, skip=skip)) for skip in (0, 3, 6, 9)]
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert [name for page in pages for name in page] == _ids(searcher.search(query, 10))


def test_a_filter_says_what_may_be_found(searcher: Searcher) -> None:
    hits = searcher.search(searcher.text("red"), 10, where=Label("blue") & ~Label("red"))
    assert sorted(_ids(hits)) == ["blue", "cyan"]


def test_codes_exchanged_between_question_and_answer_are_asked_anew(
    searcher: Searcher, colours: Path, new_colours: Path
) -> None:
    made: list[Query] = []

    def make() -> Query:
        made.append(searcher.text("blue"))
        if len(made) == 1:
            _recode(colours, new_colours)
        return made[-1]

    assert _ids(searcher.run(make, lambda query: searcher.search(query, 1))) == ["blue"]
    assert [query.codes.bits for query in made] == [12, 15]


def _recode(folder: Path, model_folder: Path) -> None:
    model = load(model_folder)
    with Library.open(folder, writable=True) as library:
        recode(library, model, encode=item_coder(model, image_path=library.picture_path))


def test_an_encoder_that_two_models_share_is_loaded_once(
    searcher: Searcher, colours: Path, new_colours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    monkeypatch.setattr(extract, "restore", lambda what, restore=extract.restore: loaded.append(what) or restore(what))
    shared = searcher.model.encoders["text"]
    assert load(new_colours).encoders["text"] == shared
    searcher.text("blue")
    _recode(colours, new_colours)
    loaded.clear()
    assert searcher.text("blue").codes.bits == 15
    assert loaded == []


def test_a_query_of_another_model_is_refused_and_not_asked_again(searcher: Searcher) -> None:
    stranger = Query(Codes.from_values([[1.0] * 5]), searcher.text("red").model)
    with pytest.raises(CodesError, match="codes of 5 bits"):
        searcher.run(lambda: stranger, lambda query: searcher.search(query, 1))


@pytest.mark.parametrize(
    ("k", "skip", "sentence"),
    [
        (0, 0, "k = 0"),
        (1, -1, "skip is -1"),
        (1, 1 << 20, "1,048,577; at most 1,048,576"),
    ],
)
def test_a_number_of_hits_that_makes_no_sense_is_refused(
    k: int, skip: int, *, sentence: str, searcher: Searcher
) -> None:
    with pytest.raises(InputError, match=sentence):
        searcher.search(searcher.text("red"), k, skip=skip)


def test_a_blank_text_a_missing_file_and_an_unknown_item_are_refused(searcher: Searcher) -> None:
    with pytest.raises(InputError, match="blank"):
        searcher.text(" \n")
    with pytest.raises(InputError, match=r"nowhere\.png"):
        searcher.image("nowhere.png")
    with pytest.raises(InputError, match="'pink'"):
        searcher.item("pink")


def test_a_side_that_an_item_does_not_have_is_named(searcher: Searcher, colours: Path) -> None:
    with Library.open(colours, writable=True) as library:
        codes = searcher.text("red").codes
        library.add([Item("0")], {"text": codes}, model=searcher.model.fingerprint)
    assert searcher.item("0").codes.bits == 12
    with pytest.raises(InputError, match="The item '0' has no image code"):
        searcher.item("0", by="image")


def test_a_model_trained_on_matrices_says_that_it_cannot_read_texts(tmp_path: Path) -> None:
    function = HashFunction((Layer(np.eye(3, dtype=np.float32), np.zeros(3, np.float32), "none"),))
    Library.create(tmp_path / "library", Model({"text": function}, "test", {})).close()
    with Searcher.open(tmp_path / "library") as searcher:
        assert not searcher.takes("text")
        with pytest.raises(InputError, match="precomputed text features"):
            searcher.text("red")


def test_a_query_is_one_code() -> None:
    with pytest.raises(CodesError, match="one code; got 2"):
        Query(Codes.from_values(np.ones((2, 8))), "0")


def test_an_address_needs_a_model_and_a_library_has_its_own(colours: Path) -> None:
    with pytest.raises(InputError, match="is an address"):
        Searcher.open("http://127.0.0.1:19530/photos")
    with pytest.raises(InputError, match="has its own model"):
        Searcher.open(colours, model="model")


def test_a_folder_that_is_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has no manifest\.json"):
        Searcher.open(tmp_path)


def test_searching_never_imports_torch(colours: Path) -> None:
    program = (
        "import sys; from rmsh.search.searcher import Searcher; from rmsh.library import Library\n"
        "s = Searcher.open(sys.argv[1]); s.search(s.text('red'), 1); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, colours], check=True)
