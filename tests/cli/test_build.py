"""`rmsh build`, `rmsh add` and `rmsh remove`: what they print and what they end with."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from PIL import Image

from rmsh.cli.main import run

Capture = pytest.CaptureFixture[str]
QUICK = ("--bits", "16", "--text-encoder", "bag-of-words", "--set", "epochs=2", "--set", "hidden=8")


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight images of one colour each, one of which is damaged."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, colour in enumerate(["red", "blue"] * 4):
        Image.new("RGB", (8, 8), colour).save(folder / f"{number}.png")
        (folder / f"{number}.txt").write_text(f"a {colour} picture, number {number}")
    (folder / "7.png").write_bytes(b"damaged")
    return folder


def test_a_library_is_built_searched_extended_and_reduced(photos: Path, capsys: Capture) -> None:
    assert run(["build", str(photos), "--out", "library", *QUICK]) == 0
    said = capsys.readouterr()
    assert "classes: blue, red" in said.err
    assert "1 picture was left out, such as 7.png" in said.err
    assert "trained on the pairs of 7 items; 0 were held out" in said.err
    assert "8 items, 16 bits; report:" in said.out
    assert "4 bytes for codes and" in said.out
    assert run(["search", "library", "red", "--to", "images", "-k", "3"]) == 0

    Image.new("RGB", (8, 8), "red").save(photos / "8.png")
    assert run(["add", "library", str(photos)]) == 0
    assert "1 items added, 8 already present, 9 in total" in capsys.readouterr().out
    assert run(["remove", "library", "8.png", "0.png"]) == 0
    assert "2 items removed, 7 left" in capsys.readouterr().out


def test_a_warning_comes_first(photos: Path, capsys: Capture) -> None:
    assert run(["build", str(photos), "--out", "library", *QUICK]) == 0
    report = json.loads(Path("library/report.json").read_text())
    words = {"queries": 3, "images": 40, "precision@10": {"value": 0.2, "chance": 0.2, "best": 1.0, "error": 0.1}}
    Path("library/report.json").write_text(json.dumps({**report, "warning": "Beware.", "words": words}))
    capsys.readouterr()
    assert run(["build", str(photos), "--out", "library", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Warning. Beware."
    assert any("0.200 of the first ten" in line for line in lines[1:])


def test_results_as_json(photos: Path, capsys: Capture) -> None:
    assert run(["build", str(photos), "--out", "library", *QUICK, "--json", "--quiet"]) == 0
    built = json.loads(capsys.readouterr().out)
    assert (built["is_new"], built["report"]["counts"]["items"]) == (True, 8)
    assert run(["add", "library", str(photos), "--skipped", "skipped.csv", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == {"added": 0, "there": 8, "skipped": 0, "items": 8}
    assert Path("skipped.csv").read_text() == "file,row,id,left_out,reason\n"
    assert run(["remove", "library", "1.png", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": 1, "items": 7}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--bits", "0"), "The option 'bits' got 0"),
        (("--set", "epoch=1"), "did you mean 'epochs'"),
        (("--image-encoder", "minilm"), "encodes texts"),
        (("--set", "bits=8"), "--set got 'bits=8'; use --bits 8"),
        (("--set", "epochs=[1"), "--set got 'epochs=[1'"),
        (("--labels-from", "texts"), "The option 'labels_from' got 'texts'"),
        (("--learn-from", "words"), "The option 'learn_from' got 'words'"),
        (("--learn-from", "nothing", *QUICK), "efficientnet-lite0, minilm"),
        (("--strict", *QUICK), "7.png"),
        (("--store", "vectors"), "The option 'store' got 'vectors'"),
    ],
)
def test_what_is_refused_is_one_sentence_and_exit_code_2(
    photos: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    assert run(["build", str(photos), "--out", "library", "--quiet", *words]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("rmsh: ")
    assert said in line
    assert not Path("library").exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gone", "gone does not exist"),
        ("empty", "empty is a folder without"),
        ("letter.docx", "letter.docx has the suffix '.docx'"),
        ("none.csv", "none.csv contains no items"),
        (
            "broken.jsonl",
            "broken.jsonl has no usable item: 1 item was left out, such as broken.jsonl, row 1",
        ),
    ],
)
def test_an_error_about_data_says_what_is_allowed(
    name: str, problem: str, *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    for file, text in (("letter.docx", "Dear"), ("none.csv", ""), ("broken.jsonl", "{\n")):
        Path(file).write_text(text)
    assert run(["build", name, "--out", "library", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith(f"rmsh: {problem}")


def test_a_library_cannot_be_created_below_a_file(photos: Path, capsys: Capture) -> None:
    assert run(["build", str(photos), "--out", str(photos / "0.png" / "library"), "--quiet", *QUICK]) == 2
    assert "cannot be read or written (Not a directory)" in capsys.readouterr().err


def test_an_unknown_id_is_refused(photos: Path, capsys: Capture) -> None:
    assert run(["build", str(photos), "--out", "library", "--quiet", *QUICK]) == 0
    assert run(["remove", "library", "nobody"]) == 2
    assert "'nobody' is not in the library" in capsys.readouterr().err


def test_an_interrupted_build_ends_with_130_and_is_resumed(
    photos: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("rmsh.builder.build")

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_items", stopped)
        assert run(["build", str(photos), "--out", "library", *QUICK]) == 130
    assert "run the same command again" in capsys.readouterr().err
    assert run(["build", str(photos), "--out", "library", *QUICK]) == 0
    assert "train: already done" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--image-encoder", "minilm"], "minilm encodes texts"),
        (["--text-encoder", "minlm"], "did you mean 'minilm'?"),
        (["--set", "epoch=3"], "The option 'epoch' is unknown"),
        (["--method", "rmhs"], "did you mean 'rmsh'?"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_read_or_written(
    option: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "not-there", "--out", str(tmp_path / "library"), *option]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
