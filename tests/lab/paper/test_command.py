from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lab.grid import read_grid
from lab.paper.__main__ import main
from lab.paper.published import COMPARED
from lab.scenes import write_scenes
from rmsh.compare.result import failure, write_result

GRID = """
datasets: [scenes]
blocks:
  - name: table 1
    methods: [cmfh, nonsense]
    bits: [16]
  - name: "table 1: networks"
    methods: [rmsh]
    bits: [16]
    options: {epochs: 2, hidden: 32}
  - name: ablation
    methods: [rmsh]
    bits: [16]
    options: {epochs: 2, hidden: 32}
    variants: {RMSH-T: {triplet: false}}
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(GRID)
    return path


@pytest.mark.slow
def test_a_grid_on_scenes_becomes_runs_tables_figures_and_a_page(
    grid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_scenes(tmp_path / "scenes", 150, side=64)
    out = tmp_path / "out"
    command = [
        str(grid),
        "--data",
        f"scenes={tmp_path / 'scenes'}",
        "--out",
        str(out),
        "--tsne",
        "--examples",
        "--json",
        "--quiet",
    ]
    assert main(command) == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["done"], written["failed"]) == (3, 1)
    names = {Path(path).name for path in written["figures"]}
    assert {"t2i-scenes.png", "i2t-scenes.svg", "tsne-scenes.svg", "precision-recall-scenes.svg"} <= names
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "nonsense" in page
    assert "RMSH-T" in (out / "tables" / "table2-scenes.md").read_text(encoding="utf-8")


def test_a_report_alone_needs_no_data(grid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = read_grid(grid).runs()[0]
    write_result(tmp_path / "out" / "runs" / failed.path, failure(failed, "memory ran out", 1.0))
    assert main([str(grid), "--out", str(tmp_path / "out"), "--only-report"]) == 0
    assert "0 runs done, 1 failed" in capsys.readouterr().out


def test_a_report_of_no_runs_is_refused(grid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(grid), "--out", str(tmp_path / "none"), "--only-report"]) == 2
    assert "--only-report" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["coco66k", "=place", "coco66k="])
def test_a_place_without_a_name_is_refused(grid: Path, given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(grid), "--out", "out", "--data", given]) == 2
    assert "NAME=PLACE" in capsys.readouterr().err


def test_data_without_a_place_is_refused(grid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(grid), "--out", str(tmp_path / "out")]) == 2
    assert "scenes" in capsys.readouterr().err


def test_the_smoke_grid_has_a_run_of_every_kind() -> None:
    runs = read_grid(Path(__file__).resolve().parents[3] / "lab" / "grids" / "smoke.yaml").runs()
    assert {run.method for run in runs} >= {*COMPARED}
    assert {option for run in runs for option in run.options} >= {"delta", "lambda4", "triplet"}
    assert any(run.label_noise for run in runs)
    assert any(run.image_noise for run in runs)
    assert len(runs) < 30


def test_missing_matplotlib_is_noticed_before_the_first_run(
    grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([str(grid), "--data", "scenes=generated:40", "--out", str(tmp_path / "out")]) == 2
    assert "matplotlib is not installed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
