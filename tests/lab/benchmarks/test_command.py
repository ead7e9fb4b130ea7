"""`make lab ARGS="prepare ..."`: what it prints, and the way from files to scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import io

from lab.__main__ import main
from rmsh.cli.main import run

Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *words: str | Path, code: int = 0) -> tuple[str, str]:
    assert main(["prepare", *map(str, words)]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def ndcg(capsys: Capture, folder: Path, *options: str, k: int) -> list[dict[str, float]]:
    """Train on the prepared pairs of a folder, encode them, and return NDCG with its chance in both directions."""
    pairs, model, codes = (str(folder / name) for name in ("pairs", "model", "codes.npz"))
    assert run(["train", pairs, "--out", model, *options, "--quiet"]) == 0
    assert run(["encode", model, pairs, "--out", codes, "--quiet"]) == 0
    capsys.readouterr()
    assert run(["evaluate", codes, "--k", str(k), "--json", "--quiet"]) == 0
    scores = json.loads(capsys.readouterr().out)["directions"]
    return [scores[direction]["ndcg"] for direction in ("i2t", "t2i")]


def test_without_a_name_it_lists_publishers_splits_and_open_points(capsys: Capture) -> None:
    out, _ = printed(capsys)
    for words in (
        "press.liacs.nl",
        "NUS-WIDE",
        "cocodataset.org",
        "split dcmh-rows",
        "4,956 validation images are queries",
        "open: The paper gives neither its random pairs nor a seed",
    ):
        assert words in out


def test_from_files_to_scores(capsys: Capture, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random((200, 24)) < 0.1).astype(np.uint8)
    labels[np.arange(200), rng.integers(0, 24, 200)] = 1
    root = tmp_path / "mirflickr"
    root.mkdir()
    features = {"XAll": labels + rng.normal(0, 0.1, labels.shape), "YAll": np.hstack([labels, 0 * labels])}
    for key, matrix in {**features, "LAll": labels}.items():
        io.savemat(root / f"mirflickr25k-{key.lower()}.mat", {key: matrix})
    out, _ = printed(capsys, "mirflickr25k", "--root", root, "--out", tmp_path / "pairs", "--split", "tenth")
    assert "200 pairs: database 180, query 20, train 180; split.json: SHA-256 " in out
    assert "topics of MIRFLICKR-25K" in out
    options = ["--set", "epochs=30", "--set", "hidden=64", "--set", "batch=32"]
    assert all(score["value"] > 2 * score["chance"] for score in ndcg(capsys, tmp_path, *options, "--bits", "32", k=20))
    assert run(["bounds", str(tmp_path / "pairs"), "--bits", "32", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == 180


@pytest.mark.slow
def test_real_tags_and_features_of_real_labels_are_learned_to_twice_chance(
    capsys: Capture, mirflickr_root: Path, tmp_path: Path
) -> None:
    labels = io.loadmat(mirflickr_root / "mirflickr25k-lall.mat")["LAll"]
    np.save(tmp_path / "images.npy", labels + np.random.default_rng(0).normal(0, 0.7, labels.shape))
    files = ["--root", mirflickr_root, "--images", tmp_path / "images.npy", "--out", tmp_path / "pairs"]
    out, _ = printed(capsys, "mirflickr25k", *files)
    assert "database 18,006, query 2,000" in out
    options = ["--bits", "64", "--set", "epochs=4", "--set", "hidden=256"]
    assert all(score["value"] > 2 * score["chance"] for score in ndcg(capsys, tmp_path, *options, k=500))


def test_what_is_missing_is_one_sentence_with_the_publishers_page(capsys: Capture, tmp_path: Path) -> None:
    out, err = printed(capsys, "nuswide", "--root", tmp_path, "--out", tmp_path / "out", code=2)
    assert out == ""
    assert err.startswith("make lab: ")
    assert "lms.comp.nus.edu.sg" in err
