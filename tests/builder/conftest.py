"""Fixtures: a folder of small drawings with captions and labels, options that learn fast, and a library of them."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from rmsh.builder import BuildConfig, Built, build

COLOURS = ("red", "green", "blue")
SHAPES = ("circle", "square")


def _drawn(folder: Path, count: int, *, first: int = 0) -> Path:
    """Drawings of one coloured shape each, with rows in metadata.csv."""
    folder.mkdir(exist_ok=True)
    table = folder / "metadata.csv"
    is_new = not table.exists()
    with table.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(["file_name", "text", "labels"])
        for i in range(first, first + count):
            colour, shape = COLOURS[i % 3], SHAPES[i // 3 % 2]
            _draw(folder / f"{i}.png", colour, shape, 4 + i % 5)
            writer.writerow([f"{i}.png", f"a {colour} {shape} number {i}", f"{colour};{shape}"])
    return folder


def _draw(path: Path, colour: str, shape: str, margin: int) -> None:
    picture = Image.new("RGB", (32, 32), "white")
    corners = (margin, margin, 31 - margin, 31 - margin)
    pen = ImageDraw.Draw(picture)
    (pen.ellipse if shape == "circle" else pen.rectangle)(corners, fill=colour)
    picture.save(path)


@pytest.fixture
def draw() -> Callable[..., Path]:
    """Draws some more: draw(folder, count, first=40)."""
    return _drawn


@pytest.fixture
def drawings(tmp_path: Path) -> Path:
    """Forty drawings."""
    return _drawn(tmp_path / "drawings", 40)


@pytest.fixture
def quick() -> BuildConfig:
    """Options that learn little and fast."""
    return BuildConfig.parse({"bits": 16, "text_encoder": "bag-of-words", "options": {"epochs": 3, "hidden": 16}})


@pytest.fixture(scope="session")
def _built_once(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    options = {"bits": 16, "text_encoder": "bag-of-words", "options": {"epochs": 3, "hidden": 16}}
    return build(_drawn(folder / "drawings", 40), folder / "library", config=BuildConfig.parse(options))


@pytest.fixture
def built(_built_once: Built, tmp_path: Path) -> Built:
    """A library of forty drawings that a test may change."""
    shutil.copytree(_built_once.library, tmp_path / "library")
    return Built(tmp_path / "library", _built_once.report, is_new=True)
