"""Multi-index hashing: its tables, its budget, and when it falls back to the scan."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.codes import Codes
from rmsh.core.errors import ConfigError
from rmsh.index.brute import Brute
from rmsh.index.mih import MultiIndex, build_tables, substring_count, substring_starts


def _clustered(n: int, bits: int = 64, seed: int = 0) -> Codes:
    """Codes around 40 centres, a few bits away."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).choice([-1, 1], (40, bits))
    return Codes.from_values(centres[rng.integers(0, 40, n)] * np.where(rng.random((n, bits)) < 0.02, -1, 1))


def _watched(index: MultiIndex, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Number of queries and first row of each scan."""
    asked: list[Any] = []
    for name in ("_nearest_keys", "_within_keys"):
        real = getattr(index, name)

        def watch(words: Any, limit: int, where: Any, first: int = 0, *, real: Any = real) -> Any:
            asked.append((len(words), first))
            return real(words, limit, where, first)

        monkeypatch.setattr(index, name, watch)
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


def test_only_the_query_that_exceeds_its_budget_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_tables_are_rebuilt_when_many_rows_were_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.mih._NEW_ROWS", 10)
    codes, queries = _clustered(2000), _clustered(3, seed=1)
    index = MultiIndex(64, budget=10**9)
    index.add(codes.take(np.arange(1500)))
    index.search(queries, 1)
    index.add(codes.take(np.arange(1500, 2000)))
    asked = _watched(index, monkeypatch)
    _assert_exact(index, codes, queries)
    assert asked == []


def test_the_default_search_does_not_import_multi_index_hashing() -> None:
    """In a separate process, because this one has imported it."""
    search = """
import sys, numpy as np
from rmsh import Codes, create_index
codes = Codes.from_values(np.ones((3, 8)))
index = create_index(8)
index.add(codes)
index.search(codes, 1)
print([name for name in sys.modules if "mih" in name])
"""
    done = subprocess.run([sys.executable, "-c", search], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_more_rows_than_int32_can_number_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.mih._MAX_ROWS", 999)
    monkeypatch.setattr("rmsh.index.mih.build_tables", None)  # building would fail
    index = MultiIndex(64)
    index.add(_clustered(1000))
    _assert_exact(index, _clustered(1000), _clustered(3, seed=1))


def test_more_neighbours_than_a_query_may_visit_are_scanned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.mih.build_tables", None)  # building would fail
    index = MultiIndex(64, budget=9)
    index.add(_clustered(100))
    assert index.search(_clustered(2), 10).rows.shape == (2, 10)


def test_each_table_holds_every_row_in_the_bucket_of_its_substring() -> None:
    words = np.random.default_rng(0).integers(0, 2**62, (300, 2), dtype=np.uint64)
    index = MultiIndex.over(words[:200].copy(), 126, threads=2)
    index.add(Codes(np.ascontiguousarray(words[200:]).view(np.uint8), 126, np.arange(100).astype(np.str_)))
    tables = build_tables(index)
    for rows, first, start, end in zip(tables.rows, tables.firsts, tables.starts, tables.starts[1:], strict=False):
        bounds = tables.bounds[first : first + 2 ** (end - start) + 1]
        buckets = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        whole = [int(low) | int(high) << 64 for low, high in words[rows]]
        assert buckets.tolist() == [number >> int(start) & (2 ** int(end - start) - 1) for number in whole]
        assert sorted(rows.tolist()) == list(range(300))


@given(st.integers(1, 512), st.integers(0, 10**9))
def test_substrings_cover_a_code_and_none_is_too_long_for_a_table(bits: int, rows: int) -> None:
    starts = substring_starts(bits, substring_count(bits, rows))
    lengths = np.diff(starts)
    assert (starts[0], starts[-1]) == (0, bits)
    assert 1 <= lengths.min() <= lengths.max() <= 24
    assert lengths.max() - lengths.min() <= 1


@pytest.mark.parametrize("budget", [-1, 0.5, "many"])
def test_an_invalid_budget_is_refused(budget: Any) -> None:
    with pytest.raises(ConfigError, match=f"budget = {budget!r}"):
        MultiIndex(64, budget=budget)
