"""`rmsh train` and `rmsh encode`: from data to a codes file, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rmsh.cli.main import run
from rmsh.codes_file import CodesFile
from rmsh.compare.measure import with_noisy_labels
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import DEFAULT_METHOD, create
from rmsh.model import load

QUICK = ["--method", "rmsh", "--bits", "16", "--set", "epochs=2", "--set", "hidden=8", "--set", "batch=16"]


def test_training_and_coding_generated_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, codes = str(tmp_path / "model"), tmp_path / "codes.npz"
    assert run(["train", "generated:80", "--out", model, *QUICK, "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["bits"] == 16
    assert "delta is" in err
    assert run(["encode", model, "generated:80", "--out", str(codes), "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"codes": str(codes), "items": 80, "bits": 16, "model": result["fingerprint"]}
    assert err == ""
    assert len(CodesFile.load(codes).ids) == 80


def test_training_and_building_have_one_default_method() -> None:
    from inspect import signature

    from rmsh.builder import BuildConfig
    from rmsh.cli.build import build
    from rmsh.cli.train import train

    defaults = {signature(function).parameters["method"].default for function in (train, build)}
    assert defaults == {DEFAULT_METHOD, BuildConfig().method} == {create().name}


def test_skipped_items_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (40, 5))
    labels[:4] = 0
    labels[4:, 0] = 1
    file = tmp_path / "pairs.npz"
    np.savez(file, images=rng.normal(size=(40, 6)), texts=rng.normal(size=(40, 4)), labels=labels)
    assert run(["train", str(file), "--out", str(tmp_path / "model"), *QUICK]) == 0
    assert "4 items without labels were skipped" in capsys.readouterr().err
    assert run(["train", str(file), "--out", str(tmp_path / "other"), *QUICK, "--strict"]) == 2
    assert "4 of 40 items have no label" in capsys.readouterr().err


def test_labels_that_seem_wrong_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, options = generate_pairs(1500, noise=0.5), ["--bits", "8", "--set", "hidden=32", "--set", "epochs=16"]
    for share, told in ((0.0, False), (0.3, True)):
        file = tmp_path / f"{share}.npz"
        labels = with_noisy_labels(pairs, share, seed=0).labels
        np.savez(file, images=np.asarray(pairs.images), texts=np.asarray(pairs.texts), labels=np.asarray(labels))
        assert run(["train", str(file), "--out", str(tmp_path / str(share)), *options]) == 0
        assert ("% of the items seem to have wrong labels" in capsys.readouterr().err) == told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "epochs"], "--set got 'epochs'; write NAME=VALUE"),
        (["--set", "seed=3"], "--set got 'seed=3'; use --seed 3"),
        (["--set", "epoch=3"], "The option 'epoch' is unknown; did you mean 'epochs'?"),
        (["--set", "epochs=many"], "The option 'epochs' got 'many'"),
        (["--method", "rmhs"], "There is no method called 'rmhs'; did you mean 'rmsh'?"),
        (["--preset", "best"], "nest has no preset 'best'"),
        (["--bits", "1000"], "The option 'bits' got 1000"),
    ],
)
def test_bad_options_end_with_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert run(["train", "generated:80", "--out", str(tmp_path / "model"), *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("rmsh: ")
    assert sentence in err
    assert not (tmp_path / "model").exists()


def test_coding_without_a_model_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["encode", str(tmp_path), "generated:80", "--out", str(tmp_path / "codes.npz")]) == 2
    assert "train one with `rmsh train`" in capsys.readouterr().err


@pytest.fixture
def pictures(tmp_path: Path) -> str:
    """Eight images of one colour each, with a text file next to each and one folder per class."""
    for number, colour in enumerate(["red", "blue"] * 4):
        folder = tmp_path / "pictures" / colour
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), colour).save(folder / f"{number}.png")
        (folder / f"{number}.txt").write_text(f"a {colour} picture")
    return str(tmp_path / "pictures")


@pytest.mark.usefixtures("_colour_encoder")
def test_raw_images_and_texts_are_encoded_with_the_named_encoders(pictures: str, tmp_path: Path) -> None:
    encoders = ["--image-encoder", "mean-colour", "--text-encoder", "bag-of-words"]
    assert run(["train", pictures, "--out", str(tmp_path / "model"), *QUICK, *encoders]) == 0
    described = load(tmp_path / "model").encoders
    assert {modality: one["name"] for modality, one in described.items()} == {
        "image": "mean-colour",
        "text": "bag-of-words",
    }


@pytest.mark.usefixtures("_colour_encoder")
def test_an_unreadable_image_counts_as_missing_and_is_an_error_with_strict(
    pictures: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(pictures) / "red" / "0.png").write_bytes(b"damaged")
    encoders = ["--image-encoder", "mean-colour", "--text-encoder", "bag-of-words"]
    model, codes = tmp_path / "model", tmp_path / "codes.npz"
    assert run(["train", pictures, "--out", str(model), *QUICK, *encoders, "--strict"]) == 2
    assert run(["train", pictures, "--out", str(model), *QUICK, *encoders]) == 0
    said = capsys.readouterr().err
    assert "1 unreadable images count as missing; the first:" in said
    assert "1 items without image were skipped" in said
    assert run(["encode", str(model), pictures, "--out", str(codes)]) == 0
    assert np.asarray(CodesFile.load(codes).has_image).sum() == 7


@pytest.mark.parametrize(
    ("option", "sentence"),
    [("minilm", "minilm encodes texts"), ("efficientnet-lite", "did you mean 'efficientnet-lite0'?")],
)
def test_a_wrong_encoder_is_refused_before_anything_is_read(
    option: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "not-there", "--out", str(tmp_path / "model"), "--image-encoder", option]) == 2
    assert sentence in capsys.readouterr().err


def test_a_finished_model_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").touch()
    assert run(["train", "not-there", "--out", str(tmp_path)]) == 2
    assert "contains a finished model" in capsys.readouterr().err


@pytest.fixture
def matrices(tmp_path: Path) -> str:
    """A folder of images.npy, texts.npy and labels.npy, without a split."""
    pairs, folder = generate_pairs(200), tmp_path / "features"
    folder.mkdir()
    for name in ("images", "texts", "labels"):
        np.save(folder / f"{name}.npy", np.asarray(getattr(pairs, name)))
    return str(folder)


def test_held_out_queries_are_stored_with_the_model_and_scored(
    matrices: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, codes = str(tmp_path / "model"), str(tmp_path / "codes.npz")
    assert run(["train", matrices, "--out", model, *QUICK, "--queries", "30"]) == 0
    assert "on 170 of 200 pairs" in capsys.readouterr().err
    assert run(["encode", model, matrices, "--out", codes]) == 0
    coded = CodesFile.load(Path(codes))
    assert coded.split is not None
    assert (coded.trained == (coded.split == "database")).all()
    assert run(["evaluate", codes, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (scores["directions"]["i2t"]["queries"], scores["warnings"]) == (30, [])


def test_training_on_all_items_is_noted_and_audit_warns_of_trained_queries(
    matrices: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, codes = str(tmp_path / "model"), str(tmp_path / "codes.npz")
    assert run(["train", matrices, "--out", model, *QUICK]) == 0
    assert "all items are trained on; --queries N" in capsys.readouterr().err
    assert run(["encode", model, matrices, "--out", codes]) == 0
    assert run(["evaluate", codes]) == 2
    assert "`rmsh train --queries N`" in capsys.readouterr().err
    assert run(["audit", codes]) == 0
    assert "Warning: the model was trained on 20 of the 20 queries" in capsys.readouterr().err


def test_scores_of_queries_from_another_split_are_shown_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, codes = str(tmp_path / "model"), str(tmp_path / "codes.npz")
    assert run(["train", "generated:100", "--out", model, *QUICK]) == 0
    assert run(["encode", model, "generated:100", "--out", codes, "--validation"]) == 0
    assert run(["evaluate", codes]) == 0
    assert "Warning: the model was trained on 9 of the 9 queries" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--protocol", "unseen"], ["--validation"]], ids=" ".join)
def test_encoding_uses_the_split_of_the_training_without_being_told(
    matrices: str, tmp_path: Path, options: list[str]
) -> None:
    model, codes = str(tmp_path / "model"), str(tmp_path / "codes.npz")
    assert run(["train", matrices, "--out", model, *QUICK, "--queries", "30", *options]) == 0
    for more in ([], options):
        assert run(["encode", model, matrices, "--out", codes, *more]) == 0
        coded = CodesFile.load(Path(codes))
        assert coded.split is not None
        assert not coded.leak()
        assert {"query"} <= set(coded.split.tolist())


def test_a_split_of_other_items_is_not_used(matrices: str, tmp_path: Path) -> None:
    model, codes = str(tmp_path / "model"), str(tmp_path / "codes.npz")
    assert run(["train", matrices, "--out", model, *QUICK, "--queries", "30"]) == 0
    assert run(["encode", model, "generated:100", "--out", codes]) == 0
    coded = CodesFile.load(Path(codes))
    assert (coded.trained, np.count_nonzero(coded.split == "query")) == (None, 10)


@pytest.mark.parametrize(
    ("data", "queries", "sentence"),
    [("generated:80", "9", "--queries is 9, but generated has its own"), (None, "200", "200 queries for 200 items")],
)
def test_impossible_queries_are_refused(
    data: str | None, queries: str, sentence: str, *, matrices: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", data or matrices, "--out", str(tmp_path / "model"), "--queries", queries]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
