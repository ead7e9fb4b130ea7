"""The measurement of search speed: results are kept, and measured again only if asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.data import RESULTS
from lab.sources import Sources
from lab.speed import engines, search
from lab.speed.tables import search_speed
from rmsh.core.files import read_json, write_json

SMALL = [(f"clustered {items} {bits}", "clustered", items, bits) for items, bits in ((1500, 64), (1500, 256))]


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for library in ("faiss", "usearch"):
        pytest.importorskip(library)
    path = tmp_path / "speed" / "search.json"
    path.parent.mkdir()
    monkeypatch.setattr(search, "RESULT", path)
    monkeypatch.setattr(search, "cases", lambda: iter(SMALL))
    monkeypatch.setattr(engines, "_ROUNDS", 1)
    monkeypatch.setattr(engines, "_LEAST_SECONDS", 0.001)
    return path


def test_a_result_is_kept_unless_it_is_measured_again(result: Path) -> None:
    kept: dict[str, Any] = {"one thread": [], "two threads": []}
    write_json(result, {"clustered 1500 64": kept})
    search.main(only="clustered")
    found = read_json(result)
    assert found["clustered 1500 64"] == kept
    rates = {(m["engine"], m["batch"]) for m in found["clustered 1500 256"]["one thread"]}
    assert rates >= {(engine, batch) for engine in ("memory", "scan", "faiss") for batch in (1, 32, 1000)}
    search.main(only="1500 64", again=True)
    again = read_json(result)
    assert again["clustered 1500 64"] != kept
    assert again["clustered 1500 256"] == found["clustered 1500 256"]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="a source distribution contains no results")
def test_the_table_names_the_instructions_of_each_measurement(result: Path) -> None:
    search.main(only="256")
    measured = read_json(result) | {search.HUGE: read_json(RESULTS / "speed" / "search.json")[search.HUGE]}
    measured["clustered 1500 256"]["machine"]["vectors"] = "NEON"
    write_json(result, measured)
    assert "| 0 M | 256 | clustered | NEON |" in search_speed(Sources(result.parent.parent))
