"""The benchmark of searching: it measures what was asked, and notices a wrong answer."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import ConfigError, RmshError
from rmsh.core.types import IntArray
from rmsh.index import speed as benchmark
from rmsh.index.speed import ENGINES, Engine, clustered


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_ROUNDS", 1)
    monkeypatch.setattr(benchmark, "_LEAST_SECONDS", 0.001)


def test_every_engine_is_measured_for_every_batch() -> None:
    measured = benchmark.measure(clustered(500, 64), clustered(8, 64, seed=1), bits=64, batches=(1, 4), k=5)
    assert [(m.engine, m.batch) for m in measured] == [
        (engine, batch) for batch in (1, 4) for engine in ("memory", "scan", "mih", "auto")
    ]
    assert all(m.queries_per_second > 0 for m in measured)


class _Wrong(Engine):
    def search(self, queries: Codes, k: int) -> IntArray:
        return np.zeros((len(queries), k), dtype=np.int64)


def test_engines_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**ENGINES, "mih": lambda *_: _Wrong()}
    monkeypatch.setattr(benchmark, "ENGINES", wrong)
    with pytest.raises(RmshError, match="mih and scan disagree"):
        benchmark.measure(
            clustered(500, 64), clustered(8, 64, seed=1), bits=64, engines=("scan", "mih"), batches=(1,), k=5
        )


def test_unknown_engines_and_batches_without_queries_are_refused() -> None:
    with pytest.raises(ConfigError, match="known engines are memory, scan, mih, auto, faiss, usearch"):
        benchmark.measure(clustered(9, 8), clustered(2, 8), bits=8, engines=("fast",))
    with pytest.raises(ConfigError, match="there are 2 queries to make batches of"):
        benchmark.measure(clustered(9, 8), clustered(2, 8), bits=8, batches=(32,))
