"""Ranking on a Milvus server: the same first page as that of the folder, with vectors and in collections without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from rmsh.core.errors import InputError
from rmsh.core.types import Modality
from rmsh.data.pairs import Pairs
from rmsh.features.bag_of_words import BagOfWords
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.index.filters import Filter, Id, Label
from rmsh.library import Hit, Item, Library
from rmsh.library.items import CandidateQuery, Candidates
from rmsh.milvus import table
from rmsh.milvus.collection import Collection
from rmsh.milvus.push import push
from rmsh.model import Model
from rmsh.pipeline import codes_of
from rmsh.search.query import Query
from rmsh.search.searcher import Searcher

pytestmark = pytest.mark.milvus

WORDS = ("cat", "dog", "red", "bus", "wave", "sea", "tree", "night")
COUNT, CANDIDATES = 600, 40
Searchers = tuple[Searcher, Searcher]


def _library(folder: Path) -> Library:
    """Items with random features: images, texts or both, and some with labels."""
    rng = np.random.default_rng(0)
    joint = JointLayer(np.eye(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(1, np.float32))
    layer = Layer(rng.standard_normal((8, 60)).astype(np.float32), np.zeros(60, np.float32), "none")
    function = HashFunction((joint, layer))
    model = Model({"image": function, "text": function}, "nest", {}, encoders={"text": BagOfWords(WORDS).describe()})
    images, texts = (rng.standard_normal((COUNT, 8)).astype(np.float32) for _ in range(2))
    kind = np.arange(COUNT) % 5
    names = [f"{row}" for row in range(COUNT)]
    pairs = Pairs(
        ids=np.array(names), images=images, texts=texts, has_image=kind != 1, has_text=kind > 0, source="random"
    )
    labels = [(*WORDS[row % 16 : row % 16 + 1], *(("dog", "red") if row % 24 == 0 else ())) for row in range(COUNT)]
    items = [
        Item(name, text=f"item {name}" if kind[row] else None, labels=labels[row]) for row, name in enumerate(names)
    ]
    library = Library.create(folder, model)
    library.add(items, codes_of(model, pairs, vectors=True), model=model.fingerprint)
    library.remove(["7", "8"])
    return library


def _searchers(library: Library, address: str) -> Searchers:
    push(library, address)
    collection = Collection.open(address, library.folder / "model", consistency="Strong")
    return Searcher(library), Searcher(collection)


@pytest.fixture(scope="module")
def searchers(tmp_path_factory: pytest.TempPathFactory, new_address: Callable[[], str]) -> Iterator[Searchers]:
    """Of a folder, and of a collection with the same items."""
    folder, collection = _searchers(_library(tmp_path_factory.mktemp("random") / "library"), new_address())
    with folder, collection:
        yield folder, collection


QUERIES: dict[str, Callable[[Searcher], Query]] = {
    "text": lambda searcher: searcher.text("wave and sea"),
    "labels": lambda searcher: searcher.text("red dogs"),
    "composed texts": lambda searcher: searcher.text("cat + tree - night"),
    "item": lambda searcher: searcher.item("5"),
    "item by text": lambda searcher: searcher.item("3", by="text"),
    "composed items": lambda searcher: searcher.compose([searcher.item("5")], minus=[searcher.item("10")], text="sea"),
}


def _first_page(searcher: Searcher, query: Query, **options: object) -> list[Hit]:
    return searcher.search(query, 25, candidates=CANDIDATES, **options)


@pytest.mark.parametrize("where", [None, Label("dog") & ~Id("10")])
@pytest.mark.parametrize("to", ["image", "text"])
@pytest.mark.parametrize("query", QUERIES)
def test_the_first_page_is_that_of_the_folder(
    query: str, *, to: Modality, where: Filter | None, searchers: Searchers
) -> None:
    ours, theirs = (_first_page(each, QUERIES[query](each), to=to, where=where) for each in searchers)
    assert ours == theirs
    assert len(ours) == 25
    assert all(hit.match is not None for hit in ours)


def _content(found: Candidates) -> tuple[Candidates, Mapping[int, Item]]:
    """Candidates with their items, which can only be read while they are used."""
    return found, found.read(found.rows.tolist())


def test_candidates_are_those_of_the_folder(searchers: Searchers) -> None:
    folder, collection = searchers
    query = folder.text("red dogs")
    labels = ["red", "dog", "'\"\\"]
    wanted = CandidateQuery(query.codes, CANDIDATES, "image", query.model, labels=labels, where=Label("dog"))
    (ours, our_items), (theirs, their_items) = (
        each.store.candidates(wanted, _content) for each in (folder, collection)
    )
    assert our_items == their_items
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    for modality in ("image", "text"):
        for part in ("codes", "has", "vectors"):
            np.testing.assert_array_equal(getattr(ours, part)[modality], getattr(theirs, part)[modality])


def test_more_candidates_than_items_are_all_items(searchers: Searchers) -> None:
    _, collection = searchers
    query = collection.text("wave")
    found = collection.store.candidates(CandidateQuery(query.codes, 20_000, "text", query.model), len)
    assert found == COUNT * 4 // 5 - 2


@pytest.mark.parametrize("text", ["cat -dog", '"cat dog"'])
def test_words_that_must_or_must_not_occur_are_refused(searchers: Searchers, text: str) -> None:
    _, collection = searchers
    with pytest.raises(InputError, match="library's folder"):
        collection.search(collection.text(text))


def test_a_collection_of_an_older_version_is_ranked_by_bits_and_can_be_pushed_to(
    tmp_path: Path, new_address: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_address()
    with _library(tmp_path / "library") as library:
        with monkeypatch.context() as patch:
            patch.delitem(table.COLUMNS, "vector")
            push(library, address)
        folder, collection = _searchers(library, address)
        assert push(library, address).written == 0
        query = folder.text("wave and sea")
        hits = _first_page(collection, collection.text("wave and sea"))
        wanted = CandidateQuery(query.codes, CANDIDATES, "image", query.model)
        found, _ = collection.store.candidates(wanted, _content)
        assert (found.vectors["image"].size, collection.item("5").vector) == (0, None)
        assert len({hit.item.id for hit in hits} & {hit.item.id for hit in _first_page(folder, query)}) > 5
        collection.close()
