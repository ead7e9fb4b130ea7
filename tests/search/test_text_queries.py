"""Encoding texts: recent ones are remembered by model, and those of several threads are encoded together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import InputError
from rmsh.hash_function import HashFunction, Layer
from rmsh.library import Hit, Library
from rmsh.library.recode import recode
from rmsh.model import Model, load
from rmsh.pipeline import item_coder
from rmsh.search.query import Query, TextQueries
from rmsh.search.searcher import Searcher

TEXTS = ["red", "green", "blue", "red and blue", "red and green", "green and blue", "nothing", "red, green and blue"]


class Encoding:
    """Encodes the length of a text, and records the batches; the first one can be made to wait."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, model: Model, texts: Sequence[str]) -> list[Query]:
        self.batches.append(list(texts))
        assert self.go_on.wait(30)
        if "bad" in texts:
            raise InputError("bad")
        return [Query(Codes.from_values([[float(len(text)) - 4]]), model.fingerprint) for text in texts]


def _model(value: float = 1.0) -> Model:
    layer = Layer(np.full((1, 1), value, np.float32), np.zeros(1, np.float32), "none")
    return Model({"text": HashFunction((layer,))}, "example", {})


def test_recent_texts_are_not_encoded_again_and_the_oldest_is_forgotten() -> None:
    encoding, model = Encoding(), _model()
    queries = TextQueries(encoding, remember=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        queries.encode(model, [text])
    assert encoding.batches == [["a"], ["b"], ["c"], ["b"]]


def test_nothing_is_remembered_if_so_wanted() -> None:
    encoding, model = Encoding(), _model()
    queries = TextQueries(encoding, remember=0)
    for _ in range(2):
        assert len(queries.encode(model, ["a", "b", "a"])) == 3
    assert encoding.batches == [["a", "b"]] * 2


def test_a_query_of_one_model_is_never_returned_for_another() -> None:
    encoding, models = Encoding(), [_model(1.0), _model(2.0)]
    queries = TextQueries(encoding, remember=9)
    found = [queries.encode(model, ["a"])[0].model for model in (*models, *models)]
    assert found == [model.fingerprint for model in (*models, *models)]
    assert len(encoding.batches) == 2


def test_a_library_that_is_recoded_gets_queries_of_its_new_model(colours: Path, new_colours: Path) -> None:
    with Searcher.open(colours) as searcher:
        assert [searcher.text("red").codes.bits for _ in range(2)] == [12, 12]
        model = load(new_colours)
        with Library.open(colours, writable=True) as library:
            recode(library, model, encode=item_coder(model, image_path=library.picture_path))
        made = searcher.text("red")
        assert (made.codes.bits, made.model) == (15, model.fingerprint)
        assert searcher.search(made, 1)[0].item.id == "red"


def _at_once(queries: TextQueries, encoding: Encoding, texts: Sequence[str]) -> list[Query | BaseException]:
    """Encode the first text, and the others while the encoder is busy with it; returns queries or errors."""
    model = _model()
    encoding.go_on.clear()
    with ThreadPoolExecutor(len(texts)) as pool:
        found = [pool.submit(queries.encode, model, [texts[0]])]
        _wait_until(lambda: len(encoding.batches) == 1)
        found += [pool.submit(queries.encode, model, [text]) for text in texts[1:]]
        _wait_until(lambda: len(queries._waiting) == len(texts) - 1)
        encoding.go_on.set()
        return [each.exception() or each.result()[0] for each in found]


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def encoding(monkeypatch: pytest.MonkeyPatch) -> Encoding:
    monkeypatch.setattr("os.cpu_count", lambda: 2)  # so that one thread encodes
    return Encoding()


def test_texts_that_wait_are_encoded_together_and_each_gets_its_own_query(encoding: Encoding) -> None:
    texts = ["a", "to", "red", "blue", "green"]
    found = _at_once(TextQueries(encoding, remember=0), encoding, texts)
    assert [sorted(batch) for batch in encoding.batches] == [["a"], sorted(texts[1:])]
    alone = [TextQueries(Encoding(), remember=0).encode(_model(), [text])[0] for text in texts]
    assert [one.codes.packed.tolist() for one in found] == [one.codes.packed.tolist() for one in alone]


def test_texts_of_similar_length_share_a_batch_and_the_first_to_come_is_in_the_next(encoding: Encoding) -> None:
    long, short = [str(number) * 30 for number in range(4)], [str(number) for number in range(4)]
    _at_once(
        TextQueries(encoding, remember=0),
        encoding,
        ["a", *(text for pair in zip(long, short, strict=True) for text in pair)],
    )
    batches = [sorted(batch) for batch in encoding.batches]
    assert batches in ([["a"], sorted(long), sorted(short)], [["a"], sorted(short), sorted(long)])


def test_a_batch_has_a_limited_size(encoding: Encoding) -> None:
    _at_once(TextQueries(encoding, remember=0), encoding, [str(number) for number in range(20)])
    assert list(map(len, encoding.batches)) == [1, 4, 4, 4, 4, 3]


def test_a_text_that_cannot_be_encoded_does_no_harm_to_the_others(encoding: Encoding) -> None:
    found = _at_once(TextQueries(encoding, remember=0), encoding, ["a", "bad", "c"])
    assert [type(each) for each in found] == [Query, InputError, Query]


def test_simultaneous_searches_find_what_single_ones_find(joint_colours: Path) -> None:
    with Searcher.open(joint_colours, remember=0) as searcher:

        def search(text: str) -> list[Hit]:
            return searcher.search(searcher.text(text), 8)

        alone = [search(text) for text in TEXTS * 4]
        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(search, TEXTS * 4)) == alone
