"""The files of figures."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from lab.paper import figure_style as style


def test_a_figure_is_saved_as_svg_and_as_png_of_its_size(tmp_path: Path) -> None:
    svg, png = style.save(style.new_figure(2, 1), tmp_path, "empty")
    assert "<svg" in svg.read_text(encoding="utf-8")
    with Image.open(png) as image:
        assert image.size == (260, 130)
