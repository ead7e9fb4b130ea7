"""Composed queries: texts, images and items are added up and subtracted in the joint space, and in the code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, InputError
from rmsh.data.pairs import Pairs
from rmsh.features.bag_of_words import BagOfWords
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.library import Hit, Item, Library
from rmsh.model import Model
from rmsh.pipeline import codes_of
from rmsh.search.query import Query, Words, compose, signs
from rmsh.search.scoring import MINUS
from rmsh.search.searcher import Searcher

WORDS = ("beach", "people", "dog", "snow")
SHOWN = {"1": "beach", "2": "beach people", "3": "dog", "4": "dog beach", "5": "snow dog", "6": "people"}


def _model(*, joint: bool = True) -> Model:
    """Images and texts have the same features, and the joint space is that of the features."""
    layer = JointLayer(np.eye(4, dtype=np.float32), np.full(4, 0.01, np.float32), np.array([0], np.float32))
    weight = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    last = Layer(weight, np.zeros(64, np.float32), "none")
    function = HashFunction((layer, last) if joint else (last,))
    return Model({"image": function, "text": function}, "nest", {}, encoders={"text": BagOfWords(WORDS).describe()})


def _open(folder: Path, model: Model, *, vectors: bool = True) -> Searcher:
    images = BagOfWords(WORDS).encode(list(SHOWN.values())).toarray()
    pairs = Pairs(ids=np.array(list(SHOWN)), images=images, source="test")
    with Library.create(folder, model) as library:
        library.add([Item(name) for name in SHOWN], codes_of(model, pairs, vectors=vectors), model=model.fingerprint)
    return Searcher.open(folder)


@pytest.fixture
def searcher(tmp_path: Path) -> Iterator[Searcher]:
    with _open(tmp_path / "library", _model()) as opened:
        yield opened


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.item.id for hit in hits]


def test_two_texts_find_what_shows_both(searcher: Searcher) -> None:
    assert _ids(searcher.search(searcher.text("dog + beach"), 1)) == ["4"]


def test_a_subtracted_text_moves_what_shows_it_down(searcher: Searcher) -> None:
    assert _ids(searcher.search(searcher.text("beach - people"), 2)) == ["1", "4"]
    assert _ids(searcher.search(searcher.text("beach - people"), 6)[-1:]) == ["6"]


def test_an_item_with_words_and_less_another_item(searcher: Searcher) -> None:
    dog, people = searcher.item("3"), searcher.item("6")
    assert _ids(searcher.search(searcher.compose([dog], text="beach"), 1)) == ["4"]
    hits = searcher.search(searcher.compose([searcher.item("2")], minus=[people]), 6)
    assert _ids(hits)[0] == "1"
    assert not {"2", "6"} & set(_ids(hits))  # the items of the query are no hits


def test_several_items_find_what_they_have_in_common(searcher: Searcher) -> None:
    query = searcher.compose([searcher.item("1"), searcher.item("3")])
    assert query.modality == "image"
    assert _ids(searcher.search(query, 1)) == ["4"]


def test_the_sum_is_that_of_unit_vectors_and_the_code_its_signs(searcher: Searcher) -> None:
    dog, people = (searcher.text(word) for word in ("dog", "people"))
    query = searcher.compose([dog], minus=[people])
    assert dog.joint is not None
    assert people.joint is not None
    assert np.linalg.norm(dog.joint) == pytest.approx(1)
    np.testing.assert_allclose(query.joint, dog.joint - MINUS * people.joint)
    assert dog.values is not None
    assert people.values is not None
    expected = Codes.from_values((dog.values - MINUS * people.values)[None])
    assert query.codes.packed.tolist() == expected.packed.tolist()
    assert query.words == Words(("dog",), ("people",))


def test_a_sum_of_sums_is_the_sum_of_all_parts(searcher: Searcher) -> None:
    nested = searcher.compose([searcher.item("1"), searcher.text("dog - people")])
    flat = searcher.compose([searcher.item("1"), searcher.text("dog")], text="- people")
    np.testing.assert_allclose(nested.joint, flat.joint, rtol=1e-5)
    assert nested.weights == flat.weights == (1.0, 1.0, -MINUS)


def test_an_image_with_a_word_that_must_not_occur_is_no_sum(searcher: Searcher) -> None:
    query = searcher.compose([searcher.item("3")], text="-snow")
    assert (query.weights, query.words) == ((1.0,), Words(without=("snow",)))


def test_without_stored_vectors_the_parts_are_compared_with_bits(tmp_path: Path) -> None:
    with _open(tmp_path / "library", _model(), vectors=False) as searcher:
        query = searcher.compose([searcher.item("3")], text="beach")
        assert query.joint is None
        assert _ids(searcher.search(query, 1)) == ["4"]


def test_a_code_alone_is_a_part_by_its_bits(searcher: Searcher) -> None:
    code = searcher.item("3").codes
    np.testing.assert_allclose(signs(code), searcher.item("3").values, rtol=1e-6)
    query = searcher.compose([Query(code, searcher.model.fingerprint)], text="beach")
    assert _ids(searcher.search(query, 1)) == ["4"]


def test_nothing_to_search_for_is_refused(searcher: Searcher) -> None:
    for text in ("- people", "-people", "-"):
        with pytest.raises(InputError, match=f"'{text}'"):
            searcher.text(text)


def test_a_model_without_a_joint_space_says_that_it_cannot_compose(tmp_path: Path) -> None:
    with _open(tmp_path / "library", _model(joint=False)) as searcher:
        assert _ids(searcher.search(searcher.text("dog"), 1)) == ["3"]
        with pytest.raises(InputError, match="2 parts, but a model of nest"):
            searcher.text("dog + beach")


def test_parts_of_different_models_are_refused(searcher: Searcher) -> None:
    dog = searcher.text("dog")
    with pytest.raises(CodesError, match="0123"):
        compose([dog, Query(dog.codes, "0123")])
