"""The files of figures: few colours in the PNG and in images inside the SVG."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab.paper import figure_style as style


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A figure of a colourful image."""
    ramp = np.linspace(0, 255, 64, dtype=np.uint8)
    pixels = np.stack([*np.meshgrid(ramp, ramp), np.full((64, 64), 128, np.uint8)], axis=-1)
    with style.applied():
        figure = style.new_figure(2, 2)
        figure.subplots().imshow(pixels)
        return style.save(figure, tmp_path_factory.mktemp("figures"), "ramp")


def test_the_png_has_few_colours(files: list[Path]) -> None:
    with Image.open(files[1]) as image:
        assert image.mode == "P"
        assert image.width == image.height == 260


def test_images_inside_the_svg_have_few_colours_and_look_alike(files: list[Path]) -> None:
    (inside,) = re.findall(r'data:image/png;base64,([^"]+)"', files[0].read_text(encoding="utf-8"))
    with Image.open(io.BytesIO(base64.b64decode(inside))) as image:
        assert image.mode == "P"
        colours = np.asarray(image.convert("RGB"), dtype=np.int64)
    red, green, blue = colours[:, :, 0], colours[:, :, 1], colours[:, :, 2]
    assert red[:, -1].mean() > 220 > 40 > red[:, 0].mean()
    assert abs(green.mean() - 128) < 8
    assert abs(blue - 128).max() < 24
