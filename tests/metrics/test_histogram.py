"""Joint histograms: the kernel and a count by hand agree; wrong input is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsh.codes import Codes, hamming
from rmsh.core.errors import CodesError, DataError
from rmsh.metrics import histogram
from rmsh.metrics.histogram import histograms, label_words, shared_labels
from rmsh.metrics.kernel import count_pairs


def random_set(seed: int, *, bits: int, classes: int, queries: int = 3, items: int = 7) -> tuple[Codes, Codes, dict]:
    rng = np.random.default_rng(seed)
    query, database = (Codes.from_values(rng.standard_normal((n, bits))) for n in (queries, items))
    labels = [(rng.random((n, classes)) < 0.3).astype(np.uint8) for n in (queries, items)]
    return query, database, {"query_labels": labels[0], "database_labels": labels[1]}


def count_by_hand(query: Codes, database: Codes, labels: dict) -> np.ndarray:
    most = int(labels["query_labels"].sum(axis=1).max())
    counted = np.zeros((len(query), query.bits + 1, most + 1), dtype=np.int64)
    distance, shared = hamming(query.packed, database.packed), shared_labels(*labels.values())
    for q, j in product(range(len(query)), range(len(database))):
        counted[q, distance[q, j], shared[q, j]] += 1
    return counted


@given(seed=st.integers(0, 10**6), bits=st.integers(1, 512), classes=st.integers(1, 200))
@settings(deadline=None)  # the first example compiles
def test_all_ways_of_counting_agree(seed: int, bits: int, classes: int) -> None:
    query, database, labels = random_set(seed, bits=bits, classes=classes)
    wanted = count_by_hand(query, database, labels)
    words = (query.words(), np.ascontiguousarray(database.words().T))
    marks = (label_words(labels["query_labels"]), np.ascontiguousarray(label_words(labels["database_labels"]).T))
    arguments = (words[0], words[1], marks[0], marks[1], bits, wanted.shape[2] - 1)
    assert (np.concatenate(list(histograms(query, database, **labels))) == wanted).all()
    assert (count_pairs(*arguments) == wanted).all()


@pytest.mark.parametrize("items", [1, 1023, 1024, 1025, 2500])
def test_items_behind_a_whole_tile_are_counted(items: int) -> None:
    query, database, labels = random_set(1, bits=9, classes=5, items=items)
    assert (next(histograms(query, database, **labels)) == count_by_hand(query, database, labels)).all()


def test_blocks_follow_the_order_of_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    query, database, labels = random_set(2, bits=5, classes=4, queries=7)
    wanted = count_by_hand(query, database, labels)
    monkeypatch.setattr(histogram, "_BLOCK_BYTES", 2 * 4 * wanted[0].size)
    blocks = list(histograms(query, database, **labels))
    assert [len(block) for block in blocks] == [2, 2, 2, 1]
    assert (np.concatenate(blocks) == wanted).all()


def test_a_block_of_the_longest_codes_and_many_labels_stays_small() -> None:
    query, database = (Codes.from_values(np.ones((n, 512))) for n in (20, 2))
    labels = {"query_labels": np.ones((20, 990)), "database_labels": np.ones((2, 990))}
    blocks = histograms(query, database, **labels)
    assert next(blocks).nbytes <= 64 << 20


def test_labels_may_be_booleans_or_floats_of_zero_and_one() -> None:
    query, database, labels = random_set(3, bits=4, classes=3)
    wanted = next(histograms(query, database, **labels))
    for dtype in (np.bool_, np.float64):
        same = {name: values.astype(dtype) for name, values in labels.items()}
        assert (next(histograms(query, database, **same)) == wanted).all()


def test_codes_of_another_length_are_refused() -> None:
    with pytest.raises(CodesError, match="1 bits and the database 2"):
        histograms(Codes.from_values([[1]]), Codes.from_values([[1, 1]]), query_labels=[[1]], database_labels=[[1]])


def test_an_empty_side_is_refused() -> None:
    empty = Codes(np.empty((0, 1), dtype=np.uint8), 1, np.empty(0, dtype=np.str_))
    with pytest.raises(CodesError, match="1 queries and 0 database items"):
        histograms(Codes.from_values([[1]]), empty, query_labels=[[1]], database_labels=np.empty((0, 1)))


@pytest.mark.parametrize(
    ("of_query", "of_database", "sentence"),
    [
        ([[1], [1]], [[1]], r"queries: .*labels of shape \(2, 1\)"),
        ([[1]], [[2]], "database: .*0 or 1"),
        ([[1, 0]], [[1]], "queries have 2 classes and the database 1"),
        (np.empty((1, 0)), np.empty((1, 0)), "give at least one class"),
        (np.ones((1, 991)), np.ones((1, 991)), "A query has 991 labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused(of_query: list, of_database: list, sentence: str) -> None:
    one = Codes.from_values([[1]])
    with pytest.raises(DataError, match=sentence):
        histograms(one, one, query_labels=of_query, database_labels=of_database)


def test_an_own_item_is_not_counted_for_its_query() -> None:
    rng = np.random.default_rng(0)
    query, database = (Codes.from_values(rng.standard_normal((7, 70))) for _ in range(2))
    labels = (rng.random((7, 5)) < 0.5).astype(np.uint8)
    left = next(histograms(query, database, query_labels=labels, database_labels=labels, leave_own_out=True))
    for row in range(7):
        others = np.delete(np.arange(7), row)
        expected = next(
            histograms(
                query.take(np.array([row])),
                database.take(others),
                query_labels=labels[[row]],
                database_labels=labels[others],
            )
        )
        assert left[row, :, : expected.shape[2]].tolist() == expected[0].tolist()


def test_an_own_item_needs_the_same_items_on_both_sides() -> None:
    codes = Codes.from_values([[1], [1]])
    with pytest.raises(CodesError, match=r"2 queries and 1 database items"):
        histograms(
            codes,
            codes.take(np.array([0])),
            query_labels=[[1], [1]],
            database_labels=[[1]],
            leave_own_out=True,
        )
