"""Multi-index hashing: what it visits, when it gives up, and how its tables follow the codes."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.codes import Codes
from rmsh.core.errors import ConfigError
from rmsh.index.brute import Brute
from rmsh.index.mih import MultiIndex, buckets_within, build, cut, substring_count
from rmsh.index.store import CodeStore


def _clustered(n: int, bits: int = 64, seed: int = 0) -> Codes:
    """Codes around 40 centres, a few bits away."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).choice([-1, 1], (40, bits))
    return Codes.from_values(centres[rng.integers(0, 40, n)] * np.where(rng.random((n, bits)) < 0.02, -1, 1))


def _watched(index: MultiIndex, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How many queries each scan of the index is asked for."""
    from rmsh.index import mih

    asked: list[Any] = []
    for name in ("nearest_keys", "within_keys"):
        real = getattr(mih, name)

        def watch(store: Any, words: Any, *args: Any, real: Any = real, **options: Any) -> Any:
            asked.append((len(words), options.get("first", 0)))
            return real(store, words, *args, **options)

        monkeypatch.setattr(mih, name, watch)
    return asked


def _assert_exact(index: MultiIndex, codes: Codes, queries: Codes) -> None:
    oracle = Brute(codes.bits)
    oracle.add(codes)
    for k in (1, 10, 60):
        np.testing.assert_array_equal(index.search(queries, k).rows, oracle.search(queries, k).rows)
    np.testing.assert_array_equal(index.within(queries, 5).rows, oracle.within(queries, 5).rows)


def test_near_neighbours_are_found_without_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, queries = _clustered(20_000), _clustered(10, seed=1)
    index = MultiIndex(64, budget=4000)
    index.add(codes)
    asked = _watched(index, monkeypatch)
    _assert_exact(index, codes, queries)
    assert asked == []


def test_a_query_whose_budget_ends_is_scanned_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = _clustered(3000)
    far = Codes.from_values(np.random.default_rng(5).standard_normal((1, 64)))
    queries = Codes(np.concatenate((codes.packed[:4], far.packed)), 64, ids=np.arange(5).astype(str))
    index = MultiIndex(64, budget=1500)
    index.add(codes)
    asked = _watched(index, monkeypatch)
    _assert_exact(index, codes, queries)
    assert asked == [(1, 0)] * 3


def test_rows_added_since_the_tables_were_built_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, queries = _clustered(2000), _clustered(3, seed=1)
    index = MultiIndex(64, budget=10**9)
    index.add(codes.take(np.arange(1500)))
    index.search(queries, 1)
    index.add(codes.take(np.arange(1500, 2000)))
    asked = _watched(index, monkeypatch)
    _assert_exact(index, codes, queries)
    assert set(asked) == {(3, 1500)}


def test_tables_are_built_anew_when_many_rows_were_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.mih._FRESH_ROWS", 10)
    codes, queries = _clustered(2000), _clustered(3, seed=1)
    index = MultiIndex(64, budget=10**9)
    index.add(codes.take(np.arange(1500)))
    index.search(queries, 1)
    index.add(codes.take(np.arange(1500, 2000)))
    asked = _watched(index, monkeypatch)
    _assert_exact(index, codes, queries)
    assert asked == []


def test_saved_tables_are_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes, queries = _clustered(1000), _clustered(3, seed=1)
    index = MultiIndex(64)
    index.add(codes)
    index.save(tmp_path)
    opened = MultiIndex.open(tmp_path, budget=10**9)
    monkeypatch.setattr("rmsh.index.mih.build", None)  # building would fail
    _assert_exact(opened, codes, queries)


def test_more_rows_than_tables_can_number_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.mih.MOST_ROWS", 999)
    monkeypatch.setattr("rmsh.index.mih.build", None)  # building would fail
    index = MultiIndex(64)
    index.add(_clustered(1000))
    _assert_exact(index, _clustered(1000), _clustered(3, seed=1))


def test_more_neighbours_than_a_query_may_visit_are_scanned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.mih.build", None)  # building would fail
    index = MultiIndex(64, budget=9)
    index.add(_clustered(100))
    assert index.search(_clustered(2), 10).rows.shape == (2, 10)


def test_each_table_holds_every_row_in_the_bucket_of_its_substring() -> None:
    words = np.random.default_rng(0).integers(0, 2**62, (300, 2), dtype=np.uint64)
    store = CodeStore(126, words[:200].copy())
    store.append(words[200:])
    tables = build(store, threads=2)
    for rows, first, start, end in zip(tables.rows, tables.firsts, tables.starts, tables.starts[1:], strict=False):
        begins = tables.begins[first : first + 2 ** (end - start) + 1]
        buckets = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        whole = [int(low) | int(high) << 64 for low, high in words[rows]]
        assert buckets.tolist() == [number >> int(start) & (2 ** int(end - start) - 1) for number in whole]
        assert sorted(rows.tolist()) == list(range(300))


@given(st.integers(1, 512), st.integers(0, 10**9))
def test_substrings_cover_a_code_and_none_is_too_long_for_a_table(bits: int, rows: int) -> None:
    starts = cut(bits, substring_count(bits, rows))
    lengths = np.diff(starts)
    assert (starts[0], starts[-1]) == (0, bits)
    assert 1 <= lengths.min() <= lengths.max() <= 24
    assert lengths.max() - lengths.min() <= 1


@pytest.mark.parametrize("bits", [5, 6, 7])
def test_every_code_within_a_radius_is_in_one_of_the_buckets_counted(bits: int) -> None:
    """By hand: buckets of step (a, j) up to the radius, against every code at that distance from zero."""
    starts = cut(bits, 2)
    masks = [((1 << int(end)) - 1) ^ ((1 << int(start)) - 1) for start, end in pairwise(starts)]
    for radius in range(bits + 1):
        steps = [(a, j) for a in range(bits + 1) for j in range(2) if 2 * a + j <= radius]
        met = [{code for code in range(1 << bits) if (code & masks[j]).bit_count() == a} for a, j in steps]
        near = {sum(1 << i for i in ones) for r in range(radius + 1) for ones in combinations(range(bits), r)}
        assert near <= set().union(*met)
        buckets = {(j, code & masks[j]) for (a, j), codes in zip(steps, met, strict=True) for code in codes}
        assert buckets_within(starts, radius) == len(buckets)


@pytest.mark.parametrize("budget", [-1, 0.5, "many"])
def test_a_budget_that_is_no_count_is_refused(budget: Any) -> None:
    with pytest.raises(ConfigError, match="visits was given; give a whole number of at least 0, or None"):
        MultiIndex(64, budget=budget)
