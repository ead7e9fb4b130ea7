"""Texts of queries: recent ones are remembered, by model."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rmsh.features import base
from rmsh.library import Hit, Library
from rmsh.library.recode import recode
from rmsh.model import load
from rmsh.pipeline import item_coder
from rmsh.search.searcher import Searcher

TEXTS = ["red", "green", "blue", "red and blue", "red and green", "green and blue", "nothing", "red, green and blue"]


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were encoded, in order."""
    texts = list[str]()

    def encode(encoder: Any, items: Sequence[Any]) -> Any:
        texts.extend(items)
        return base.encode_queries(encoder, items)

    monkeypatch.setattr("rmsh.search.searcher.encode_queries", encode)
    return texts


def test_recent_texts_are_not_encoded_again_and_the_oldest_is_forgotten(colours: Path, encoded: list[str]) -> None:
    with Searcher.open(colours, remember=2) as searcher:
        for text in ("red", "green", "red", "blue", "red", "green"):
            searcher.text(text)
    assert encoded == ["red", "green", "blue", "green"]


def test_nothing_is_remembered_if_so_wanted(colours: Path, encoded: list[str]) -> None:
    with Searcher.open(colours, remember=0) as searcher:
        first, second = (searcher.text("red").codes.packed.tolist() for _ in range(2))
    assert first == second
    assert encoded == ["red", "red"]


def test_a_library_that_is_recoded_gets_queries_of_its_new_model(colours: Path, new_colours: Path) -> None:
    with Searcher.open(colours) as searcher:
        assert [searcher.text("red").codes.bits for _ in range(2)] == [12, 12]
        model = load(new_colours)
        with Library.open(colours, writable=True) as library:
            recode(library, model, encode=item_coder(model, image_path=library.picture_path))
        made = searcher.text("red")
        assert (made.codes.bits, made.model) == (15, model.fingerprint)
        assert searcher.search(made, 1)[0].item.id == "red"


def test_simultaneous_searches_find_what_single_ones_find(joint_colours: Path) -> None:
    with Searcher.open(joint_colours, remember=0) as searcher:

        def search(text: str) -> list[Hit]:
            return searcher.search(searcher.text(text), 8)

        alone = [search(text) for text in TEXTS * 4]
        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(search, TEXTS * 4)) == alone
