"""The numbers of the pages: generated from current results, and a change of either is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import numbers
from lab.numbers import Sources, generated, pages, problems
from rmsh.methods.scm import SCM

pytestmark = pytest.mark.skipif(not numbers.RESULTS.is_dir(), reason="a source distribution contains no results")

PAGE = "# Title\n\n<!-- numbers: glint-scale -->\n<!-- end -->\n\nText.\n"


def test_every_number_of_the_pages_is_current() -> None:
    assert problems(pages()) == []


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
    monkeypatch.setattr(numbers, "BLOCKS", {"glint-scale": numbers.glint_scale})
    monkeypatch.setattr("sys.argv", ["numbers", "--check"])
    with pytest.raises(SystemExit) as ended:
        numbers.main()
    assert ended.value.code == code
    assert capsys.readouterr().out
