"""The numbers of the pages: generated from current results, and a change of either is found."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lab import numbers, tables
from lab.data import GRIDS, RESULTS
from lab.grid import read_grid
from lab.numbers import generated, pages, problems
from lab.sources import Sources
from rmsh.compare.result import write_result
from rmsh.methods.scm import SCM

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="a source distribution contains no results")

PAGE = "# Title\n\n<!-- numbers: glint-scale -->\n<!-- end -->\n\nText.\n"


def test_every_number_of_the_pages_is_current() -> None:
    assert problems(pages()) == []


def test_every_result_names_a_commit_of_this_repository() -> None:
    git = ["git", "-C", str(RESULTS)]
    whole = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True).stdout
    if whole.strip() != "false":
        pytest.skip("this is not a checkout with its whole history")
    files = {path: json.loads(path.read_text()) for path in RESULTS.rglob("*.json")}
    named = {found["commit"]: path for path, found in files.items() if isinstance(found, dict) and found.get("commit")}
    known = subprocess.run([*git, "cat-file", "--batch-check"], input="\n".join(named), capture_output=True, text=True)
    missing = [line.split()[0] for line in known.stdout.splitlines() if line.split()[1] != "commit"]
    assert [named[commit].name for commit in missing] == []


def test_a_block_is_filled_and_the_rest_of_the_page_is_kept() -> None:
    page = generated(PAGE, Sources())
    assert "| 1,000,000 | 80 |" in page
    assert page.startswith("# Title\n\n<!-- numbers: glint-scale -->\n| pairs")
    assert page.endswith("|\n<!-- end -->\n\nText.\n")
    assert generated(page, Sources()) == page


def test_a_number_that_was_changed_by_hand_is_found(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(generated(PAGE, Sources()).replace("0.930", "0.999"))
    assert any("page.md" in problem for problem in problems([path]))


def test_a_block_that_no_page_shows_is_found(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(generated(PAGE, Sources()))
    found = problems([path])
    assert any("'serving'" in problem for problem in found)
    assert not any("'glint-scale'" in problem for problem in found)


def test_a_new_version_of_a_method_makes_its_results_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCM, "version", 99, raising=False)
    found = problems(pages())
    assert found
    assert all("version 1 of scm" in problem and "99" in problem for problem in found)


def test_an_unknown_block_is_refused() -> None:
    with pytest.raises(SystemExit, match="'nothing'"):
        generated("<!-- numbers: nothing -->\n<!-- end -->", Sources())


@pytest.mark.parametrize(("text", "code"), [("0.930", 0), ("0.999", 1)])
def test_the_check_fails_when_a_page_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    path = tmp_path / "page.md"
    path.write_text(generated(PAGE, Sources()).replace("0.930", text))
    monkeypatch.setattr(numbers, "pages", lambda: [path])
    monkeypatch.setattr(numbers, "BLOCKS", {"glint-scale": tables.glint_scale})
    monkeypatch.setattr("sys.argv", ["numbers", "--check"])
    with pytest.raises(SystemExit) as ended:
        numbers.main()
    assert ended.value.code == code
    assert capsys.readouterr().out


def test_unseen_runs_are_shown_as_far_as_they_are_made(tmp_path: Path) -> None:
    grid = read_grid(GRIDS / "unseen.yaml")
    names = ("ndcg@10", "ndcg@100", "map@all", "recall@1", "recall@5", "recall@10")
    for run in [run for run in grid.runs() if run.method in ("rmsh", "cca-itq")][:3]:
        score = {"value": 0.6 if run.method == "rmsh" else 0.5, "chance": 0.1}
        scores = {d: dict.fromkeys(names, score) for d in ("i2t", "t2i")}
        result = {"format": 3, "status": "done", "run": run.to_json(), "scores": scores, "seconds": {"fit_cpu": 7.0}}
        write_result(tmp_path / "runs" / run.path, result)
    lines = tables.unseen(Sources(tmp_path)).splitlines()
    assert lines[0].startswith("| method | bits | NDCG@10, chance 0.100 |")
    assert lines[2] == "| RMSH | 64 | 0.600 / 0.600 | 0.600 / 0.600 | 0.600 / 0.600 | 7 |"
    assert [line.split(" | ")[0] for line in lines[-2:]] == ["| RMSH", "| CCA-ITQ"]
