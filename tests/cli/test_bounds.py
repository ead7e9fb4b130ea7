"""`rmsh bounds`: code lengths in every spelling, what is printed, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.cli.main import main

Ended = tuple[int, str, str]  # exit code, standard output, standard error


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run `rmsh bounds` with some arguments in this process."""

    def ended(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["rmsh", "bounds", *map(str, arguments)])
        with pytest.raises(SystemExit) as leave:
            main()
        captured = capsys.readouterr()
        return int(leave.value.code or 0), captured.out, captured.err

    return ended


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Twenty items of six classes, one of them without labels."""
    labels = np.random.default_rng(0).integers(0, 2, (20, 6))
    labels[:, 0], labels[7] = 1, 0
    np.savez(tmp_path / "tiny.npz", labels=labels)
    return tmp_path / "tiny.npz"


def answer(ended: Ended) -> dict[str, Any]:
    code, out, err = ended
    assert code == 0, err
    value: dict[str, Any] = json.loads(out)
    return value


@pytest.mark.parametrize(
    "words",
    [
        ["--bits", "16", "--bits", "32"],
        ["--bits", "32,16"],
        ["-b", "16,32", "--confidence", "0.9"],
    ],
    ids=" ".join,
)
def test_code_lengths_may_be_written_in_several_ways(
    bounds: Callable[..., Ended], data: Path, words: list[str]
) -> None:
    value = answer(bounds(data, *words, "--json"))
    assert [choice["bits"] for choice in value["choices"]] == [16, 32]


def test_without_bits_the_usual_code_lengths_are_shown(bounds: Callable[..., Ended], data: Path) -> None:
    assert [choice["bits"] for choice in answer(bounds(data, "--json"))["choices"]] == [16, 32, 64, 128]


def test_items_without_labels_are_counted(bounds: Callable[..., Ended], data: Path) -> None:
    value = answer(bounds(data, "--json"))
    assert (value["items"], value["without_labels"], value["classes"]) == (19, 1, 6)


def test_the_confidence_reaches_the_lower_bound(bounds: Callable[..., Ended], data: Path) -> None:
    low, high = (answer(bounds(data, "--json", "--confidence", p)) for p in (0.6, 0.99))
    assert low["choices"][0]["paper"]["lower"] < high["choices"][0]["paper"]["lower"]
    assert (low["confidence"], high["confidence"]) == (0.6, 0.99)


def test_a_split_limits_the_bounds_to_its_training_items(bounds: Callable[..., Ended]) -> None:
    code, out, err = bounds("generated:40", "--json")
    assert (code, json.loads(out)["items"]) == (0, 36)
    assert "36 training items" in err


def test_a_delta_that_no_bound_allows_is_marked(bounds: Callable[..., Ended], data: Path) -> None:
    code, out, _ = bounds(data, "--bits", "1")
    assert code == 0
    assert "1, infeasible" in out
    assert "1 bits, delta 1: no form of the bounds leaves a delta" in out


def test_quiet_prints_no_notes(bounds: Callable[..., Ended], data: Path) -> None:
    code, out, err = bounds(data, "--quiet")
    assert (code, err) == (0, "")
    assert "19 items with labels, 1 without" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--bits", "16,x"], "--bits got 'x'; write whole numbers with commas"),
        (["--bits", "16.5"], "--bits got '16.5'"),
        (["--bits", "0"], "cannot have 0 bits"),
        (["--bits", "1024"], "cannot have 1024 bits"),
        (["--confidence", "0.4"], "above 0.5 and below 1"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(
    bounds: Callable[..., Ended], data: Path, words: list[str], sentence: str
) -> None:
    code, out, err = bounds(data, *words, "--quiet")
    assert (code, out) == (2, "")
    assert err.startswith("rmsh: ")
    assert sentence in err


def test_data_without_labels_is_refused(bounds: Callable[..., Ended], tmp_path: Path) -> None:
    np.savez(tmp_path / "plain.npz", images=np.ones((4, 3)), texts=np.ones((4, 2)))
    code, out, err = bounds(tmp_path / "plain.npz", "--quiet")
    assert (code, out) == (2, "")
    assert "label" in err


def test_the_published_figures_of_mirflickr_are_printed(bounds: Callable[..., Ended], mirflickr_root: Path) -> None:
    code, out, _ = bounds(mirflickr_root / "mirflickr25k-lall.mat", "--bits", "16,64,128")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert code == 0
    assert rows == [
        ["16", "10.03", "1", "no", "3"],
        ["64", "10.03", "16", "yes", "13"],
        ["128", "10.03", "41", "yes", "26"],
    ]
    assert "H(L) = 13.04 bits" in out
    assert "16 bits, delta 3: the paper's bounds, 10.03 (|l_i|) and 1 (independent H(L)), leave no delta" in out
