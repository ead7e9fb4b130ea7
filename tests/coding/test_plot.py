"""The figure of the bounds: its formats, and that it draws what was chosen."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rmsh.coding.bounds import choose_delta
from rmsh.coding.entropy import LabelStatistics
from rmsh.coding.plot import plot_bounds
from rmsh.core.errors import ConfigError, MissingExtraError

STATISTICS = LabelStatistics.of(np.random.default_rng(0).integers(0, 2, (50, 12)))
CHOICES = [choose_delta(STATISTICS, bits) for bits in (4, 16, 64, 300)]


@pytest.mark.parametrize(("suffix", "start"), [(".pdf", b"%PDF"), (".png", b"\x89PNG"), (".SVG", b"<?xml")])
def test_the_suffix_decides_the_format(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"bounds{suffix}"
    plot_bounds(STATISTICS, CHOICES, path)
    assert path.read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_choices_change_the_figure(tmp_path: Path) -> None:
    pictures = []
    for chosen in (CHOICES[1:3], CHOICES[1:2]):
        plot_bounds(STATISTICS, chosen, tmp_path / "bounds.png")
        pictures.append(np.asarray(Image.open(tmp_path / "bounds.png")))
    assert pictures[0].std() > 0
    assert not np.array_equal(pictures[0], pictures[1])


def test_the_figure_is_readable_in_black_and_white(tmp_path: Path) -> None:
    plot_bounds(STATISTICS, CHOICES, tmp_path / "bounds.png")
    pixels = np.asarray(Image.open(tmp_path / "bounds.png").convert("RGB"))
    assert (pixels == pixels[:, :, :1]).all()


def test_labels_without_any_room_are_drawn_too(tmp_path: Path) -> None:
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
