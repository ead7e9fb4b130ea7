"""`rmsh compare`: a table from result files, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmsh.cli.main import run

WORDS = ["compare", "generated:120", "--methods", "scm", "--references", "none", "--bits", "8,16"]


def test_the_table_has_one_row_per_length_and_a_second_call_repeats_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, "--out", str(tmp_path)]
    assert run([*words, "--json", "--quiet"]) == 0
    result = json.loads(capsys.readouterr().out)
    rows = [(row["protocol"], row["method"], row["bits"]) for row in result["rows"]]
    assert rows == [("paper", "scm", 8), ("unseen", "scm", 8), ("paper", "scm", 16), ("unseen", "scm", 16)]
    score = result["rows"][2]["scores"]["ndcg@500"]["i2t"]
    assert score["value"] > score["chance"]
    assert run(words) == 0
    shown = capsys.readouterr()
    assert "4 runs on generated:120, 4 already done" in shown.err
    assert "Protocol unseen" in shown.out
    assert "NDCG@500" not in shown.out  # the database has 108 items
    assert "distinct" in shown.out
    assert "chance" in shown.out


def test_a_failed_run_is_noted_and_the_table_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "generated:120", "--methods", "scm", "--references", "none", "--train", "500"]
    assert run([*words, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "500 training pairs" in shown.err
    assert "0/1" in shown.out


def test_results_with_other_defaults_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS[:-1], "8", "--out", str(tmp_path)]
    assert run(words) == 0
    path = tmp_path / "generated-120" / "scm-8-s0.json"
    path.write_text(path.read_text().replace('"ridge": 0.001', '"ridge": 0.002'))
    assert run(words) == 0
    assert "scm-8-s0.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--methods", "smc"], "did you mean 'scm'?"),
        (["--references", "clip"], "'clip'"),
        (["--bits", "16;32"], "16;32"),
        (["--bits", "0"], "0 bits"),
        (["--bits", "1000"], "1000"),
        (["--protocol", "seen"], "'seen'"),
        (["--methods", "none", "--references", "none"], "names neither"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["compare", "generated:120", "--out", str(tmp_path), *words]) == 2
    assert said in capsys.readouterr().err
