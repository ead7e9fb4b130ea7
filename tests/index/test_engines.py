"""What is compared: every engine finds the same distances, and faiss is asked at its better level."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.index import speed as engines
from rmsh.index.speed import clustered

WORDS = clustered(400, 48)
QUERIES = Codes(clustered(5, 48, seed=1).view(np.uint8)[:, :6].copy(), 48, np.arange(5).astype(str))


@pytest.mark.parametrize("name", ["mih", "auto", "faiss", "usearch"])
def test_every_engine_finds_what_the_scan_finds(name: str) -> None:
    if name in {"faiss", "usearch"}:
        pytest.importorskip(name)
    found = engines.ENGINES[name](WORDS, 48, 1).search(QUERIES, 7)
    assert found is not None
    np.testing.assert_array_equal(found, engines.ENGINES["scan"](WORDS, 48, 1).search(QUERIES, 7))


def test_faiss_is_asked_at_the_level_that_was_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    faiss = pytest.importorskip("faiss")
    engine = engines.ENGINES["faiss"](WORDS, 48, 1)
    monkeypatch.setattr(engine, "levels", [1, 0])
    monkeypatch.setattr(engine, "_seconds", lambda queries, k, level: [1.0, 2.0][level])
    engine.search(QUERIES, 3)
    assert engine.note == "at its level NONE"
    assert faiss.SIMDConfig.get_level() == 0


def test_auto_says_what_it_chose_and_memory_answers_nothing() -> None:
    auto = engines.ENGINES["auto"](WORDS, 48, 1)
    auto.search(QUERIES, 3)
    assert auto.note == "scan: there are only 400 codes"
    assert engines.ENGINES["memory"](WORDS, 48, 2).search(QUERIES, 3) is None


def test_engines_of_others_are_listed_only_where_they_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert engines.installed() == ["memory", "scan", "mih", "auto"]
