from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from lab.paper.figures import style
from lab.paper.figures.delta import draw_delta
from lab.paper.figures.files import save
from lab.paper.outcomes import Outcome
from lab.paper.reproduction import write_report
from rmsh.compare.grid import Run
from rmsh.compare.result import write_result
from rmsh.core.errors import DataError

PLOTS = ("precision-recall", "delta", "distances", "weights", "bytes", "time", "label-noise", "query-noise")


def _write(outcomes: list[Outcome], folder: Path) -> Path:
    for outcome in outcomes:
        write_result(folder / "runs" / outcome.run.path, outcome.result)
    return folder


@pytest.fixture(scope="module")
def written(all_outcomes: list[Outcome], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a report of all made-up runs writes."""
    return write_report(_write(all_outcomes, tmp_path_factory.mktemp("all")), title="All of it")


def test_every_figure_and_table_is_written_and_the_page_carries_them(written: dict[str, Any]) -> None:
    names = {Path(path).name for path in written["figures"]}
    assert names >= {f"{plot}-coco66k.{kind}" for plot in PLOTS for kind in ("svg", "png")}
    assert {"example-codes.svg", "architecture.png"} <= names
    assert all(Path(path).stat().st_size > 1000 for path in written["figures"])
    page = Path(written["report"]).read_text(encoding="utf-8")
    assert page.count("<img") == 10
    assert page.count("<table") == 5
    assert "RMSH is the best of the eight methods" in page
    assert "RMSH at 64 bits scores 0.6010 / 0.6300 NDCG@500" in page
    assert "The best of the other seven: SVHN 0.5010 (I → T), SVHN 0.5300 (T → I)." in page
    assert "Of 6 claims of the paper: holds 5, holds in part 1." in page


def test_a_page_asks_nothing_of_a_network(written: dict[str, Any]) -> None:
    page = Path(written["report"]).read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert {found[:5] for found in re.findall(r'(?:src|href)="([^"]*)"', page)} == {"data:"}


def test_a_vector_in_the_page_is_whole(written: dict[str, Any]) -> None:
    page = Path(written["report"]).read_text(encoding="utf-8")
    vectors = re.findall(r'src="data:image/svg\+xml,([^"]*)"', page)
    assert len(vectors) == 10
    assert not [sign for vector in vectors for sign in "&<>#" if sign in vector]  # they would end or change it
    files = (Path(path).read_text(encoding="utf-8") for path in written["figures"] if path.endswith(".svg"))
    assert {unquote(vector) for vector in vectors} == {text.replace("\n", " ") for text in files}


def test_the_same_runs_give_the_same_vector(all_outcomes: list[Outcome], tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        with style.applied():
            vector, _ = save(draw_delta(all_outcomes, "coco66k"), tmp_path, name)
        files.append(vector.read_bytes())
    assert files[0] == files[1]


def test_words_from_files_are_escaped(make_outcome, fail_outcome, tmp_path: Path) -> None:
    folder = _write([make_outcome(), fail_outcome(method="ssah", error="loss is <nan> & <script>")], tmp_path)
    (folder / "remarks.md").write_text("One <b>bold</b> word.\n\nAnother paragraph.")
    write_report(folder, title="<Title>")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "loss is &lt;nan&gt; &amp; &lt;script&gt;" in page
    assert "<title>&lt;Title&gt;</title>" in page
    assert "<p>One &lt;b&gt;bold&lt;/b&gt; word.</p>\n<p>Another paragraph.</p>" in page


def test_missing_and_failed_runs_are_counted_and_listed(make_outcome, fail_outcome, tmp_path: Path) -> None:
    folder = _write([make_outcome(), fail_outcome(method="ssah", error="memory ran out")], tmp_path)
    wanted = [Run("coco66k", "rmsh"), Run("coco66k", "ssah"), Run("coco66k", "tdh", bits=16)]
    written = write_report(folder, title="Unfinished", wanted=wanted)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert (written["done"], written["failed"]) == (1, 1)
    assert "Of 3 runs 1 are done, 1 failed and 1 are not run." in page
    assert "Not run yet: TDH 1 of 1." in page
    assert "<th>16 bits</th><th>64 bits</th>" in page  # a length that is to be run has its column
    assert "coco66k/ssah-64-s0.json</code>: memory ran out" in page
    assert page.count('<p class="muted">not run</p>') == 9  # precision-recall and time are there


def test_runs_that_all_failed_still_make_a_report(fail_outcome, tmp_path: Path) -> None:
    folder = _write([fail_outcome(method=m) for m in ("rmsh", "tdh")], tmp_path)
    assert write_report(folder, title="Nothing worked")["done"] == 0
    assert "not run" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no result"):
        write_report(tmp_path, title="Empty")
