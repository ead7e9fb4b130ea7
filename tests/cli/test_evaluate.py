"""`rmsh evaluate`: scores next to chance, from codes files of rmsh."""

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
from rmsh.metrics import evaluate_directions

runner = CliRunner()
LABELS = np.eye(3, dtype=np.uint8)[np.arange(40) % 3]


def coded(**changes: Any) -> CodesFile:
    rng = np.random.default_rng(0)
    image, text = (Codes.from_values(rng.standard_normal((40, 12))) for _ in range(2))
    split = ["query"] * 8 + ["database"] * 32
    values = {"image": image.packed, "text": text.packed, "labels": LABELS, "split": split, "model": "f00d"}
    return CodesFile(ids=image.ids, bits=12, **{**values, **changes})


@pytest.fixture
def codes(tmp_path: Path) -> str:
    coded().save(tmp_path / "codes.npz")
    return str(tmp_path / "codes.npz")


def test_the_table_shows_every_score_with_bounds_and_chance(codes: str) -> None:
    done = runner.invoke(app, ["evaluate", codes, "--k", "5"])
    assert done.exit_code == 0, done.stderr
    for shown in ("i2t NDCG@5", "t2i mAP@all", "i2t P@5", "P(d<=2)", "expected", "worst ties", "best ties", "chance"):
        assert shown in done.stdout
    assert "i2t: 8 queries, 0 dropped" in done.stdout


def test_json_is_what_the_library_returns(codes: str) -> None:
    options = ["--k", "5", "--map-k", "7", "--map-normaliser", "hits", "--direction", "t2i", "--direction", "i2i"]
    value = json.loads(runner.invoke(app, ["evaluate", codes, "--json", *options]).stdout)
    own = coded()
    wanted = evaluate_directions(
        own.part("query"), own.part("database"), directions=["t2i", "i2i"], k=5, map_k=7, map_normaliser="hits"
    )
    assert value["model"] == "f00d"
    assert value["directions"] == {direction: scores.to_json() for direction, scores in wanted.items()}


def test_unseen_items_are_scored_at_ranks_that_fit_and_by_recall(codes: str) -> None:
    shown = runner.invoke(app, ["evaluate", codes, "--protocol", "unseen"]).stdout
    for name in ("i2t NDCG@10", "i2t NDCG@all", "t2i recall@1", "t2i recall@5", "i2t recall@10"):
        assert name in shown
    value = json.loads(runner.invoke(app, ["evaluate", codes, "--protocol", "unseen", "--json"]).stdout)
    assert value["protocol"] == "unseen"
    assert value["directions"]["i2t"]["further"]["recall@5"]["chance"] == 5 / 8


def test_queries_without_a_database_are_ranked_among_themselves(tmp_path: Path) -> None:
    coded(split=["query"] * 8 + [""] * 32).save(tmp_path / "codes.npz")
    words = ["evaluate", str(tmp_path / "codes.npz"), "--protocol", "unseen"]
    assert "i2t: 8 queries, 0 dropped because nothing is relevant; 7 database items" in runner.invoke(app, words).stdout


@pytest.mark.parametrize("ranks", [["-k", "5,9"], ["--k", "5", "--k", "9"]], ids=" ".join)
def test_several_ranks_may_be_given(codes: str, ranks: list[str]) -> None:
    shown = runner.invoke(app, ["evaluate", codes, *ranks]).stdout
    assert "i2t NDCG@5" in shown
    assert "i2t NDCG@9" in shown
    assert "recall" not in shown


def test_several_directions_are_written_with_commas(codes: str) -> None:
    done = runner.invoke(app, ["evaluate", codes, "--direction", "t2i,i2i", "--json"])
    assert list(json.loads(done.stdout)["directions"]) == ["t2i", "i2i"]


def test_values_of_each_query_are_written(tmp_path: Path, codes: str) -> None:
    runner.invoke(app, ["evaluate", codes, "--per-query", str(tmp_path / "values.npz")])
    with np.load(tmp_path / "values.npz") as file:
        assert file["i2t_ids"].tolist() == [str(row) for row in range(8)]
        assert file["t2i_map"].shape == (8,)


def test_quiet_prints_no_notes(codes: str) -> None:
    assert runner.invoke(app, ["evaluate", codes, "--quiet"]).stderr == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--map-k", "some"], "--map-k got 'some'"),
        (["--map-k", "0"], "The option 'map_k' got 0"),
        (["-k", "0"], "The option 'k' got 0"),
        (["-k", "5,x"], "-k got 'x'"),
        (["--map-normaliser", "top"], "The option 'map_normaliser' got 'top'"),
        (["--direction", "x2t"], "There is no direction 'x2t'"),
        (["--protocol", "seen"], "--protocol got 'seen'"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    codes: str, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", codes, *options]) == 2
    assert capsys.readouterr().err.startswith(f"rmsh: {sentence}")


@pytest.mark.parametrize(("changes", "sentence"), [({"labels": None}, "no labels"), ({"split": None}, "no split")])
def test_a_file_without_what_scores_need_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    coded(**changes).save(tmp_path / "codes.npz")
    assert run(["evaluate", str(tmp_path / "codes.npz")]) == 2
    assert f"The codes have {sentence}" in capsys.readouterr().err
