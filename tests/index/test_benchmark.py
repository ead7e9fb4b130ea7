"""The benchmark of searching: it measures what was asked, and notices a wrong answer."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.errors import ConfigError, RmshError
from rmsh.index import benchmark
from rmsh.index.made_codes import clustered


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_ROUNDS", 1)
    monkeypatch.setattr(benchmark, "_LEAST_SECONDS", 0.001)


def test_every_engine_is_measured_for_every_batch() -> None:
    measured = benchmark.measure(clustered(500, 64), clustered(8, 64, seed=1), batches=(1, 4), k=5)
    assert [(m.engine, m.batch) for m in measured] == [
        (engine, batch) for batch in (1, 4) for engine in ("scan", "mih", "auto")
    ]
    assert all(m.queries_per_second > 0 for m in measured)


def test_engines_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**benchmark.ENGINES, "mih": lambda codes, threads: lambda queries, k: np.zeros((len(queries), k))}
    monkeypatch.setattr(benchmark, "ENGINES", wrong)
    with pytest.raises(RmshError, match="mih and scan disagree"):
        benchmark.measure(clustered(500, 64), clustered(8, 64, seed=1), engines=("scan", "mih"), batches=(1,), k=5)


def test_unknown_engines_and_batches_without_queries_are_refused() -> None:
    with pytest.raises(ConfigError, match="known engines are scan, mih, auto, faiss, usearch"):
        benchmark.measure(clustered(9, 8), clustered(2, 8), engines=("fast",))
    with pytest.raises(ConfigError, match="there are 2 queries to make batches of"):
        benchmark.measure(clustered(9, 8), clustered(2, 8), batches=(32,))


def test_engines_of_others_are_listed_only_where_they_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "find_spec", lambda name: None)
    assert benchmark.installed() == ["scan", "mih", "auto"]


def test_bandwidth_is_a_positive_rate() -> None:
    assert benchmark.bandwidth(clustered(1000, 64), threads=2) > 0
