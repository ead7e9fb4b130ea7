"""Figures of a data set: their formats, and that they show the chosen deltas and the numbers of the card."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab.__main__ import main
from lab.data_figures import plot_bounds, plot_card
from lab.datacard import DataCard, make_card
from rmsh.coding.bounds import choose_delta
from rmsh.coding.entropy import LabelStatistics
from rmsh.core.errors import ConfigError, MissingExtraError
from rmsh.data.open import Opened, open_pairs
from rmsh.data.pairs import Pairs

STATISTICS = LabelStatistics.of(np.random.default_rng(0).integers(0, 2, (50, 12)))
CHOICES = [choose_delta(STATISTICS, bits) for bits in (4, 16, 64, 300)]


@pytest.mark.parametrize(("suffix", "start"), [(".pdf", b"%PDF"), (".png", b"\x89PNG"), (".SVG", b"<?xml")])
def test_the_suffix_decides_the_format(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"bounds{suffix}"
    plot_bounds(STATISTICS, CHOICES, path)
    assert path.read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_choices_change_the_figure(tmp_path: Path) -> None:
    images = []
    for chosen in (CHOICES[1:3], CHOICES[1:2]):
        plot_bounds(STATISTICS, chosen, tmp_path / "bounds.png")
        images.append(np.asarray(Image.open(tmp_path / "bounds.png")))
    assert images[0].std() > 0
    assert not np.array_equal(images[0], images[1])


def test_the_figure_is_readable_in_black_and_white(tmp_path: Path) -> None:
    plot_bounds(STATISTICS, CHOICES, tmp_path / "bounds.png")
    pixels = np.asarray(Image.open(tmp_path / "bounds.png").convert("RGB"))
    assert (pixels == pixels[:, :, :1]).all()


def test_labels_that_leave_no_delta_are_drawn_too(tmp_path: Path) -> None:
    crowded = LabelStatistics.of(np.random.default_rng(0).integers(0, 2, (600, 300)))
    plot_bounds(crowded, [choose_delta(crowded, 8)], tmp_path / "bounds.png")
    assert (tmp_path / "bounds.png").stat().st_size > 0


@pytest.mark.parametrize("name", ["bounds.jpg", "bounds"])
def test_another_suffix_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"\.pdf, \.png or \.svg"):
        plot_bounds(STATISTICS, CHOICES, tmp_path / name)


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"\[plots\]"):
        plot_bounds(STATISTICS, CHOICES, tmp_path / "bounds.png")


@pytest.fixture(scope="module")
def card() -> DataCard:
    return make_card(open_pairs("generated:60"))


def drawn(card: DataCard, path: Path) -> str:
    """The figure as SVG with its words as text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        plot_card(card, path)
    return path.read_text()


def test_the_figure_names_classes_and_chance(card: DataCard, tmp_path: Path) -> None:
    figure = drawn(card, tmp_path / "card.svg")
    for words in (">person<", "a random ranking scores NDCG@500 0.", "labels per item, 2.", "12 classes"):
        assert words in figure


def test_only_the_most_frequent_of_many_classes_are_named(tmp_path: Path) -> None:
    pairs = Pairs(ids=np.arange(90).astype(str), labels=np.eye(90, dtype=np.uint8))
    figure = drawn(make_card(Opened(pairs, None, (), "many")), tmp_path / "card.svg")
    assert "(and 50 rarer classes)" in figure
    assert "random ranking" not in figure


@pytest.mark.parametrize("what", ["bounds", "card"])
def test_the_command_draws_data_by_name(tmp_path: Path, what: str) -> None:
    assert main(["figure", what, "generated:60", "--out", str(tmp_path / "figure.svg")]) == 0
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")


def test_bounds_need_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "plain.npz", images=np.ones((4, 3)), ids=np.arange(4))
    assert main(["figure", "bounds", str(tmp_path / "plain.npz"), "--out", str(tmp_path / "figure.svg")]) == 2
    assert "plain has no labels" in capsys.readouterr().err
