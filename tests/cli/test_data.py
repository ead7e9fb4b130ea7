"""`rmsh data`: what each verb prints, as text and as JSON, and the way from files to scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io

from rmsh.cli.main import run

Capture = pytest.CaptureFixture[str]


def told(capsys: Capture, *words: str | Path, code: int = 0) -> tuple[str, str]:
    assert run([*map(str, words)]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def answer(capsys: Capture, *words: str | Path) -> dict[str, Any]:
    out, err = told(capsys, *words, "--json", "--quiet")
    assert err == ""
    value: dict[str, Any] = json.loads(out)
    return value


def ndcg(capsys: Capture, folder: Path, *options: str, k: int) -> list[dict[str, float]]:
    """Train on the prepared pairs of a folder, code them, and return NDCG with its chance level in both directions."""
    told(capsys, "train", folder / "pairs", "--out", folder / "model", *options, "--quiet")
    told(capsys, "encode", folder / "model", folder / "pairs", "--out", folder / "codes.npz", "--quiet")
    scores = answer(capsys, "evaluate", folder / "codes.npz", "--k", str(k))["directions"]
    return [scores[direction]["ndcg"] for direction in ("i2t", "t2i")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The community's files of 200 items: features of the labels, and one tag a label."""
    rng = np.random.default_rng(0)
    labels = (rng.random((200, 24)) < 0.1).astype(np.uint8)
    labels[np.arange(200), rng.integers(0, 24, 200)] = 1
    (tmp_path / "mirflickr").mkdir()
    matrices = {
        "XAll": labels + rng.normal(0, 0.1, labels.shape),
        "YAll": np.hstack([labels, 0 * labels]),
        "LAll": labels,
    }
    for key, matrix in matrices.items():
        io.savemat(tmp_path / "mirflickr" / f"mirflickr25k-{key.lower()}.mat", {key: matrix})
    return tmp_path / "mirflickr"


def test_list_names_owners_and_splits(capsys: Capture) -> None:
    out, _ = told(capsys, "data", "list")
    for words in (
        "press.liacs.nl",
        "NUS-WIDE",
        "cocodataset.org",
        "split dcmh-rows",
        "4,956 validation images are queries",
    ):
        assert words in out
    assert answer(capsys, "data", "list")["mscoco"]["protocols"][0]["queries"] == 4956


def test_from_files_to_scores(capsys: Capture, root: Path, tmp_path: Path) -> None:
    out, err = told(
        capsys, "data", "prepare", "mirflickr25k", "--root", root, "--out", tmp_path / "pairs", "--split", "tenth"
    )
    assert "200 pairs: database 180, queries 20, training 180" in out
    assert "split.json: SHA-256 " in out
    assert "topics of MIRFLICKR-25K" in err
    options = ["--set", "epochs=30", "--set", "hidden=64", "--set", "batch=32"]
    assert all(score["value"] > 2 * score["chance"] for score in ndcg(capsys, tmp_path, *options, "--bits", "32", k=20))
    assert answer(capsys, "bounds", tmp_path / "pairs", "--bits", "32")["items"] == 180


@pytest.mark.slow
def test_real_tags_and_features_of_real_labels_are_learned_to_twice_chance(
    capsys: Capture, mirflickr_root: Path, tmp_path: Path
) -> None:
    labels = io.loadmat(mirflickr_root / "mirflickr25k-lall.mat")["LAll"]
    np.save(tmp_path / "images.npy", labels + np.random.default_rng(0).normal(0, 0.7, labels.shape))
    files = ["--root", mirflickr_root, "--images", tmp_path / "images.npy", "--out", tmp_path / "pairs", "--quiet"]
    out, _ = told(capsys, "data", "prepare", "mirflickr25k", *files)
    assert "database 18,006, queries 2,000" in out
    options = ["--bits", "64", "--set", "epochs=4", "--set", "hidden=256"]
    assert all(score["value"] > 2 * score["chance"] for score in ndcg(capsys, tmp_path, *options, k=500))


def test_what_is_missing_is_one_sentence_with_the_owners_page(capsys: Capture, tmp_path: Path) -> None:
    out, err = told(capsys, "data", "prepare", "nuswide", "--root", tmp_path, "--out", tmp_path / "out", code=2)
    assert out == ""
    assert err.splitlines()[-1].startswith("rmsh: ")
    assert "lms.comp.nus.edu.sg" in err


def test_the_card_of_a_benchmark_says_what_the_paper_leaves_open(capsys: Capture) -> None:
    out, _ = told(capsys, "data", "card", "mscoco")
    assert "open: The paper gives neither its random pairs nor a seed" in out
    assert answer(capsys, "data", "card", "mscoco")["card"] is None


def test_the_card_of_prepared_pairs_has_the_numbers_of_its_split(capsys: Capture, root: Path, tmp_path: Path) -> None:
    told(
        capsys, "data", "prepare", "mirflickr25k", "--root", root, "--out", tmp_path / "pairs", "--split", "tenth", "-q"
    )
    out, _ = told(capsys, "data", "card", tmp_path / "pairs")
    assert "24 classes" in out
    assert "open: A pair without tags" in out
    card = answer(capsys, "data", "card", tmp_path / "pairs")["card"]
    assert (card["counts"]["query"], len(card["frequencies"])) == (20, 24)


def test_any_data_has_a_card(capsys: Capture) -> None:
    value = answer(capsys, "data", "card", "generated:50")
    assert value["benchmark"] is None
    assert value["card"]["classes"] == 12
