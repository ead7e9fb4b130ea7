"""`rmsh audit`: codes of any program, what was guessed, and what is wrong with the bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rmsh.cli.main import app, run
from rmsh.codes import Codes
from rmsh.codes_file import CodesFile

runner = CliRunner()
SIGNS = np.where(np.random.default_rng(0).random((60, 8)) < 0.5, 1, -1)
SIGNS[:, 3], SIGNS[:, 5] = 1, -SIGNS[:, 0]  # a dead bit, and a duplicate
LABELS = np.eye(3, dtype=np.uint8)[np.arange(60) % 3]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    np.savez(tmp_path / "codes.npz", B=SIGNS)
    np.savez(tmp_path / "labels.npz", L=LABELS)
    return [str(tmp_path / "codes.npz"), str(tmp_path / "labels.npz")]


def audited(*arguments: str) -> Any:
    done = runner.invoke(app, ["audit", *arguments, "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_tables_show_bits_and_scores_and_the_notes_what_was_guessed(files: list[str]) -> None:
    done = runner.invoke(app, ["audit", *files, "--k", "5"])
    assert done.exit_code == 0, done.stderr
    for shown in ("Codes of 8 bits", "dead bits", "1 (3)", "1 ((0, 5))", "NDCG@5", "chance"):
        assert shown in done.stdout
    assert "codes were taken from key 'B' (60 x 8) of codes.npz: -1 and +1" in done.stderr
    assert "6 of 60 items were drawn as queries (seed 0)" in done.stderr


def test_json_has_both_sides_scores_and_notes(files: list[str]) -> None:
    value = audited(*files, "--queries", "20")
    assert (value["query"]["items"], value["database"]["items"]) == (20, 40)
    assert (value["database"]["dead"], value["database"]["duplicates"]) == ([3], [[0, 5]])
    assert 0 < value["scores"]["ndcg"]["chance"] < 1
    assert len(value["notes"]) == 3


def test_queries_may_be_named(tmp_path: Path) -> None:
    named = {"query_codes": SIGNS[:7], "database_codes": SIGNS[7:], "qL": LABELS[:7], "rL": LABELS[7:]}
    np.savez(tmp_path / "c.npz", **named)
    assert audited(str(tmp_path / "c.npz"))["scores"]["queries"] == 7


def test_a_codes_file_of_rmsh_needs_no_options(tmp_path: Path) -> None:
    codes = Codes.from_values(SIGNS)
    split = ["query"] * 5 + ["database"] * 55
    own = CodesFile(ids=codes.ids, bits=8, image=codes.packed, text=codes.packed, labels=LABELS, split=split)
    own.save(tmp_path / "own.npz")
    value = audited(str(tmp_path / "own.npz"), "--direction", "t2t")
    assert (value["scores"]["queries"], value["scores"]["database"]) == (5, 55)
    assert value["notes"][-1] == "the direction is t2t"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--queries", "60"], "60 queries for 60 items"),
        (["--direction", "i2t"], "--direction is 'i2t'"),
        (["--map-k", "x"], "--map-k got 'x'"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    files: list[str], options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", *files, *options]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\nrmsh: ") + error.startswith("rmsh: ") == 1
