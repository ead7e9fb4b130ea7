"""The index that chooses: what it takes, and why it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.index.auto import Auto

ROWS = 600
CENTRES = np.random.default_rng(1).choice([-1, 1], (2, 64))


def _index(monkeypatch: pytest.MonkeyPatch, *, scan: float = 1.0, mih: float = 1.0, centres: bool = True) -> Auto:
    """An index over codes near two centres, or anywhere, in which searches take the given times."""
    monkeypatch.setattr("rmsh.index.auto._FEW_ROWS", 100)
    monkeypatch.setattr(
        "rmsh.index.auto._timed", lambda search: (search(), scan if search.args[0].kind == "scan" else mih)
    )
    rng = np.random.default_rng(0)
    values = rng.standard_normal((ROWS, 64))
    if centres:
        values = CENTRES[rng.integers(0, 2, ROWS)] * np.where(values > 2.5, -1, 1)
    index = Auto(64, budget=100)
    index.add(Codes.from_values(values))
    return index


def _ask(index: Auto, k: int = 5, **options: Any) -> Any:
    index.search(Codes.from_values(CENTRES), k, **options)
    return index.chosen


@pytest.mark.parametrize(("scan", "mih", "faster"), [(2.0, 1.0, "mih"), (1.0, 2.0, "scan")])
def test_the_faster_is_chosen_and_the_times_are_said(
    scan: float, mih: float, faster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = _ask(_index(monkeypatch, scan=scan, mih=mih))
    assert choice.engine == faster
    assert choice.reason == f"{500 * mih:.3g} ms a query by mih and {500 * scan:.3g} ms by scan, measured on 2"


def test_far_neighbours_are_scanned_and_no_table_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.mih.build", None)  # building would fail
    choice = _ask(_index(monkeypatch, mih=0.0, centres=False))
    assert choice.engine == "scan"
    assert "buckets to visit, and only 600 codes" in choice.reason


def test_a_radius_is_measured_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    index = _index(monkeypatch, mih=0.5)
    queries = Codes.from_values(np.ones((1, 64)))
    index.within(queries, 2)
    assert index.chosen is not None
    assert index.chosen.engine == "mih"
    index.within(queries, 60)
    assert (index.chosen.engine, "within 60 bits" in index.chosen.reason) == ("scan", True)


def test_a_mask_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = _ask(_index(monkeypatch, mih=0.0), where=np.ones(ROWS, dtype=np.bool_))
    assert (choice.engine, choice.reason) == ("scan", "a mask is looked at while scanning")


def test_few_codes_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    index = _index(monkeypatch, mih=0.0)
    monkeypatch.setattr("rmsh.index.auto._FEW_ROWS", 601)
    assert _ask(index).reason == "there are only 600 codes"


def test_each_kind_of_search_is_measured_once_until_the_index_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    index, measured = _index(monkeypatch), []
    real = index._measure
    monkeypatch.setattr(index, "_measure", lambda kind, *rest: (measured.append(kind), real(kind, *rest))[1])
    for k in (5, 5, 7, 200, 5):
        _ask(index, k)
    assert [kind[:2] for kind in measured] == [("k", 3), ("k", 8)]
    index.add(Codes.from_values(np.ones((ROWS, 64))))
    _ask(index)
    assert len(measured) == 3


def test_real_measurements_give_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.auto._FEW_ROWS", 1)
    index = Auto(16)
    assert index.chosen is None
    index.add(Codes.from_values(np.random.default_rng(0).standard_normal((2000, 16))))
    index.search(Codes.from_values(np.ones((3, 16))), 4)
    assert index.chosen is not None
    assert index.chosen.engine in {"scan", "mih"}
