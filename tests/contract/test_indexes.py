"""The contract of every index, built in or third-party: the results of brute force, ties included, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rmsh.codes import MAX_BITS, Codes
from rmsh.core.errors import CodesError, ConfigError, InputError
from rmsh.index import INDEXES, create_index
from rmsh.index.base import StoredIndex
from rmsh.index.brute import Brute
from rmsh.index.filters import Label

# Options under which each index is tested; other indexes are tested without options.
OPTIONS: dict[str, list[dict[str, Any]]] = {"scan": [{"threads": 1}, {"threads": 3}]}
CASES = [(name, options) for name in INDEXES.names() for options in OPTIONS.get(name, [{}])]

on_every_index = pytest.mark.parametrize(("name", "options"), CASES, ids=str)
some = settings(max_examples=50, deadline=None)  # the first example compiles

lengths = st.one_of(st.sampled_from([1, 2, 63, 64, 65, 128, 129, MAX_BITS]), st.integers(1, MAX_BITS))


@pytest.fixture(autouse=True, scope="module")
def _small_data_takes_every_path() -> Iterator[None]:
    """Use threads for tiny data too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rmsh.index.scan._WORDS_PER_THREAD", 1)
        patch.setattr("rmsh.index.scan._QUERIES_PER_THREAD", 4)
        yield


def _codes(rng: np.random.Generator, n: int, bits: int, *, centres: int) -> Codes:
    """Random codes, or some that lie around a few centres, with ties and duplicates."""
    values = rng.standard_normal((n, bits))
    if centres:
        middle = np.where(np.random.default_rng(0).random((centres, bits)) < 0.5, 1, -1)
        values = middle[rng.integers(0, centres, n)] * np.where(rng.random((n, bits)) < 0.03, -1, 1)
    return Codes.from_values(values)


def _assert_same(
    index: StoredIndex, oracle: StoredIndex, queries: Codes, k: int, radius: int, where: Any = None
) -> None:
    ours, theirs = (i.search(queries, k, where=where) for i in (index, oracle))
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    np.testing.assert_array_equal(ours.distances, theirs.distances)
    near, nearby = (i.within(queries, radius, where=where) for i in (index, oracle))
    for part in ("offsets", "rows", "distances"):
        np.testing.assert_array_equal(getattr(near, part), getattr(nearby, part))


def _filled(name: str, options: dict[str, Any], codes: Codes) -> StoredIndex:
    index = create_index(codes.bits, name, **options)
    index.add(codes)
    return index


def _corner() -> Codes:
    """Codes 000, 100, 110, 111, 000 by row."""
    return Codes.from_values([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [1, 1, 1], [-1, -1, -1]])


@on_every_index
@some
@given(data=st.data(), bits=lengths, seed=st.integers(0, 99), centres=st.sampled_from([0, 1, 7]))
def test_every_result_equals_that_of_brute_force(
    name: str, options: dict[str, Any], data: st.DataObject, bits: int, seed: int, centres: int
) -> None:
    rng = np.random.default_rng(seed)
    index, oracle = create_index(bits, name, **options), Brute(bits)
    k, radius = data.draw(st.sampled_from([1, 3, 50, 2000])), data.draw(st.integers(0, bits + 1))
    for count in data.draw(st.lists(st.sampled_from([0, 1, 30, 400, 700]), min_size=1, max_size=3)):
        codes = _codes(rng, count, bits, centres=centres)
        np.testing.assert_array_equal(index.add(codes), oracle.add(codes))
        queries = _codes(rng, data.draw(st.sampled_from([1, 2, 12])), bits, centres=centres)
        _assert_same(index, oracle, queries, k, radius)
        there = oracle.search(queries.take(np.arange(1)), oracle.row_count + 1).rows[0]
        removed = rng.choice(there, len(there) // 5, replace=False)
        for each in (index, oracle):
            each.remove(removed)
        _assert_same(index, oracle, queries, k, radius, rng.random(oracle.row_count) < data.draw(st.floats(0, 1)))
    assert (len(index), index.row_count) == (len(oracle), oracle.row_count)


@on_every_index
def test_equal_distances_are_ordered_by_row(name: str, options: dict[str, Any]) -> None:
    index = _filled(name, options, _codes(np.random.default_rng(0), 5, 40, centres=0).take(np.zeros(1, int)))
    for _ in range(600):
        index.add(Codes.from_values(np.ones((1, 40))))
    found = index.search(Codes.from_values(np.ones((3, 40))), 550)
    assert found.rows.tolist() == [list(range(1, 551))] * 3
    assert not found.distances.any()


@on_every_index
def test_a_hand_worked_search(name: str, options: dict[str, Any]) -> None:
    found = _filled(name, options, _corner()).search(Codes.from_values([[-1, -1, -1], [1, 1, 1]]), 4)
    assert found.rows.tolist() == [[0, 4, 1, 2], [3, 2, 1, 0]]
    assert found.distances.tolist() == [[0, 0, 1, 2], [0, 1, 2, 3]]
    assert (found.rows.dtype, found.distances.dtype) == (np.int64, np.int32)


@on_every_index
@pytest.mark.parametrize(("radius", "rows"), [(0, [0, 4]), (1, [0, 4, 1]), (3, [0, 4, 1, 2, 3]), (9, [0, 4, 1, 2, 3])])
def test_a_radius_includes_its_bound(name: str, options: dict[str, Any], radius: int, rows: list[int]) -> None:
    found = _filled(name, options, _corner()).within(Codes.from_values([[-1, -1, -1]]), radius)
    assert found.of(0)[0].tolist() == rows


@on_every_index
def test_k_larger_than_the_index_returns_all_items(name: str, options: dict[str, Any]) -> None:
    index = _filled(name, options, _corner())
    index.remove([1])
    assert index.search(_corner(), 100).rows.shape == (5, 4)
    assert index.search(_corner(), 100, where=np.arange(5) < 2).rows.tolist() == [[0]] * 5


@on_every_index
@pytest.mark.parametrize("queries", [0, 2])
def test_nothing_to_find_gives_results_of_the_right_shape(name: str, options: dict[str, Any], queries: int) -> None:
    index, codes = create_index(3, name, **options), _corner().take(np.arange(queries))
    index.add(_corner().take(np.arange(0)))
    for where in (None, np.empty(0, dtype=np.bool_)):
        assert index.search(codes, 4, where=where).rows.shape == (queries, 0)
        assert len(index.within(codes, 3, where=where)) == queries
    index.add(_corner())
    assert index.search(codes, 4, where=np.zeros(5, dtype=np.bool_)).distances.shape == (queries, 0)
    assert index.within(codes, 3, where=np.zeros(5, dtype=np.bool_)).rows.size == 0
    assert index.search(codes.take(np.arange(0)), 4).rows.shape == (0, 4)


@on_every_index
@pytest.mark.parametrize("bits", [60, 128, 200])
def test_a_read_only_memory_map_can_be_the_base(name: str, options: dict[str, Any], bits: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    codes, more = _codes(rng, 600, bits, centres=5), _codes(rng, 50, bits, centres=5)
    np.save(tmp_path / "words.npy", codes.words())
    words = np.load(tmp_path / "words.npy", mmap_mode="r")
    alive = rng.random(600) < 0.9
    index = INDEXES.load(name).over(words, bits, **options)
    oracle = Brute(bits)
    oracle.add(codes)
    for each in (index, oracle):
        each.remove(np.flatnonzero(~alive))
        assert each.add(more)[0] == 600
        each.remove([601, int(np.flatnonzero(alive)[0])])
    _assert_same(index, oracle, more, 30, bits // 8)


@on_every_index
def test_several_threads_search_at_once(name: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    index = _filled(name, options, _codes(rng, 700, 64, centres=3))
    queries = [_codes(rng, 1, 64, centres=3) for _ in range(12)]
    alone = [index.search(query, 20).rows for query in queries]
    with ThreadPoolExecutor(4) as pool:
        together: list[NDArray[np.int64]] = list(pool.map(lambda query: index.search(query, 20).rows, queries))
    np.testing.assert_array_equal(np.concatenate(alone), np.concatenate(together))


@on_every_index
def test_codes_of_another_length_are_refused(name: str, options: dict[str, Any]) -> None:
    index, other = _filled(name, options, _corner()), Codes.from_values([[1, 1]])
    for ask in (index.add, lambda codes: index.search(codes, 1), lambda codes: index.within(codes, 1)):
        with pytest.raises(CodesError, match=r"2 bits .* 3 bits"):
            ask(other)


@on_every_index
@pytest.mark.parametrize("k", [0, -1, True, 1.5, None])
def test_an_invalid_k_is_refused(name: str, options: dict[str, Any], k: Any) -> None:
    with pytest.raises(InputError, match=f"k = {k}; .* at least 1"):
        create_index(3, name, **options).search(_corner(), k)


@on_every_index
@pytest.mark.parametrize("radius", [-1, 0.5, "2"])
def test_an_invalid_radius_is_refused(name: str, options: dict[str, Any], radius: Any) -> None:
    with pytest.raises(InputError, match=f"radius = {radius!r}; .* at least 0"):
        create_index(3, name, **options).within(_corner(), radius)


@on_every_index
@pytest.mark.parametrize("where", [np.ones(4, bool), np.ones(5), np.arange(5), [True], Label("dog"), True])
def test_a_mask_must_have_one_boolean_per_row(name: str, options: dict[str, Any], where: Any) -> None:
    index = _filled(name, options, _corner())
    with pytest.raises(InputError, match="boolean mask over its 5 rows"):
        index.search(_corner(), 1, where=where)
    with pytest.raises(InputError, match="boolean mask over its 5 rows"):
        index.within(_corner(), 1, where=where)


@on_every_index
@pytest.mark.parametrize("unknown", [5, -1, 2])
def test_an_unknown_row_is_named_and_nothing_is_removed(name: str, options: dict[str, Any], unknown: int) -> None:
    index = _filled(name, options, _corner())
    index.remove([2, 2])  # one row
    with pytest.raises(InputError, match=rf"Row {unknown} .* 4 items"):
        index.remove([0, unknown])
    assert len(index) == 4
    index.remove([])
    assert index.search(_corner(), 9).rows[0].tolist() == [0, 4, 1, 3]


@on_every_index
@pytest.mark.parametrize("rows", [[0.0], [[0]], [True, False, False, False, False], "0"])
def test_rows_must_be_integers(name: str, options: dict[str, Any], rows: Any) -> None:
    with pytest.raises(InputError, match=r"shape \(n,\)"):
        _filled(name, options, _corner()).remove(rows)


@on_every_index
@pytest.mark.parametrize("bits", [0, 513, 8.0])
def test_an_invalid_number_of_bits_is_refused(name: str, options: dict[str, Any], bits: Any) -> None:
    with pytest.raises(CodesError, match="1 to 512"):
        create_index(bits, name, **options)


def test_an_index_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'scam'.*'scan'"):
        create_index(64, "scam")


def test_scan_is_the_default() -> None:
    assert type(create_index(8)) is INDEXES.load("scan")
