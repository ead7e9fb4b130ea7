from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.grid import Grid, read_grid
from lab.paper.report import write_report
from lab.paper.results import Experiment, RunResult
from rmsh.compare.result import write_result
from rmsh.core.errors import DataError

PLOTS = ("precision-recall", "delta", "distances", "weights", "bytes", "time", "label-noise", "query-noise")


def _block(name: str, result: RunResult) -> dict[str, Any]:
    """A block of one run."""
    run = result.run
    block = {"name": name, "bits": {run.bits: [run.seed]}, "train": run.train, "methods": [run.method]}
    block |= {noise: [getattr(run, noise)] for noise in ("label_noise", "image_noise", "text_noise")}
    if run.tag.partition("=")[0] in run.options:
        return block | {"sweeps": {option: [value] for option, value in run.options.items()}}
    return block | ({"variants": {run.tag: dict(run.options)}} if run.tag else {"options": dict(run.options)})


def _write(experiment: Experiment, folder: Path) -> Grid:
    """Write the results of an experiment, and return a grid with its runs."""
    blocks = []
    for kind, results in experiment.blocks.items():
        for number, result in enumerate(results):
            blocks.append(_block(f"{kind}: {number}", result))
            if not result.missing:
                write_result(folder / "runs" / result.run.path, result.result)
    (folder / "grid.yaml").write_text(yaml.safe_dump({"datasets": [experiment.dataset], "blocks": blocks}))
    return read_grid(folder / "grid.yaml")


def _report(experiment: Experiment, folder: Path, *, title: str = "Title") -> tuple[dict[str, Any], str]:
    grid = _write(experiment, folder)
    written = write_report(grid, folder, runs=folder / "runs", extras=folder / "extras", title=title)
    return written, (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(everything: Experiment, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    return _report(everything, tmp_path_factory.mktemp("all"))


def test_every_figure_and_table_is_written_and_the_page_contains_them(written: tuple[dict[str, Any], str]) -> None:
    files, page = written
    names = {Path(path).name for path in files["figures"]}
    assert names == {f"{plot}-coco66k.{kind}" for plot in PLOTS for kind in ("svg", "png")}
    assert all(Path(path).stat().st_size > 1000 for path in files["figures"])
    assert page.count("<img") == 10  # with the two explanations from docs/figures
    assert page.count("<table") == 5
    assert "RMSH is the best of the eight methods" in page
    assert "RMSH at 64 bits scores 0.6010 / 0.6300 NDCG@500" in page
    assert "SVHN with 0.5010 (I → T), SVHN with 0.5300 (T → I)" in page
    assert "5 confirmed, 1 partly confirmed" in page


def test_a_page_needs_no_network(written: tuple[dict[str, Any], str]) -> None:
    _, page = written
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "<script" not in page
    assert {found[:5] for found in re.findall(r'(?:src|href)="([^"]*)"', page)} == {"data:"}


def test_an_svg_in_the_page_is_complete(written: tuple[dict[str, Any], str]) -> None:
    files, page = written
    found = {base64.b64decode(text).decode() for text in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)}
    assert len(found) == 8
    assert found == {Path(path).read_text(encoding="utf-8") for path in files["figures"] if path.endswith(".svg")}


def test_text_from_files_is_escaped(
    make_result: Callable[..., RunResult], fail_result: Callable[..., RunResult], tmp_path: Path
) -> None:
    failed = fail_result(method="ssah", error="loss is <nan> & <script>")
    (tmp_path / "extras").mkdir()
    (tmp_path / "extras" / "remarks.md").write_text("One <b>bold</b> word.\n\nAnother paragraph.")
    _, page = _report(Experiment("coco66k", {"table 1": [make_result(), failed]}), tmp_path, title="<Title>")
    assert "<script>" not in page
    assert "loss is &lt;nan&gt; &amp; &lt;script&gt;" in page
    assert "<title>&lt;Title&gt;</title>" in page
    assert "<p>One &lt;b&gt;bold&lt;/b&gt; word.</p>\n<p>Another paragraph.</p>" in page


def test_missing_and_failed_runs_are_counted_and_listed(
    make_result: Callable[..., RunResult], fail_result: Callable[..., RunResult], tmp_path: Path
) -> None:
    missing = make_result(method="tdh", bits=16)
    missing.result["status"] = "missing"
    failed = fail_result(method="ssah", error="memory ran out")
    written, page = _report(Experiment("coco66k", {"table 1": [make_result(), failed, missing]}), tmp_path)
    assert (written["done"], written["failed"]) == (1, 1)
    assert "1 of 3 runs are done, 1 failed, 1 are missing" in page
    assert "TDH 1 of 1" in page
    assert "<th>16 bits</th><th>64 bits</th>" in page  # a length whose runs are missing has its column
    assert "coco66k/ssah-64-s0.json</code>: memory ran out" in page
    assert page.count('<p class="muted">not run</p>') == 4  # delta, distances, weights, bytes
    assert "Wrong labels" not in page
    _, page = _report(Experiment("coco66k", {"table 1": [make_result()], "label noise": [missing]}), tmp_path)
    assert '<h4>Wrong labels</h4>\n<p class="muted">not run</p>' in page


def test_a_report_is_written_even_if_all_runs_failed(fail_result: Callable[..., RunResult], tmp_path: Path) -> None:
    runs = [fail_result(method=m) for m in ("rmsh", "tdh")]
    written, page = _report(Experiment("coco66k", {"table 1": runs}), tmp_path)
    assert (written["done"], written["failed"]) == (0, 2)
    assert "not run" in page


def test_a_folder_without_results_is_refused(make_result: Callable[..., RunResult], tmp_path: Path) -> None:
    grid = _write(Experiment("coco66k", {"table 1": [make_result()]}), tmp_path)
    with pytest.raises(DataError, match=r"empty.*--only-report"):
        write_report(grid, tmp_path, runs=tmp_path / "empty", extras=tmp_path, title="Empty")
