"""Retrieval examples and the t-SNE plane as figures."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image

from lab.paper import figure_style as style
from lab.paper.example_figures import draw_found_images, draw_found_texts, draw_tsne


def _plane() -> dict[str, Any]:
    points = [[float(n), float(-n), n % 6] for n in range(12)]
    return {"classes": list("abcdef"), "points": {"image": points, "text": points[:6]}}


def test_the_plane_has_a_colour_and_a_shape_per_class() -> None:
    images, texts, both = draw_tsne(_plane()).axes
    assert [len(c.get_offsets()) for c in images.collections] == [2] * 6
    assert [len(c.get_offsets()) for c in texts.collections] == [1] * 6
    assert len(both.collections) == 12
    assert [c.get_label() for c in images.collections] == list("abcdef")


def _image(colour: str) -> str:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), colour).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _found() -> dict[str, Any]:
    hits = [{"text": f"hit {n}", "image": _image("red"), "shared": n, "distance": n} for n in range(3)]
    query = {"text": "a <query>", "labels": ["dog", "cat"], "image": _image("blue")}
    return {method: {"query": query, "hits": hits} for method in ("cmfh", "rmsh")}


def test_images_found_have_borders_by_the_labels_they_share() -> None:
    panels = draw_found_images(_found()).axes
    assert len(panels) == 6
    for row in (panels[:3], panels[3:]):
        for axes, mark in zip(row, style.GRADES, strict=True):
            assert axes.lines[0].get_marker() == mark.shape
            assert axes.lines[0].get_color() == mark.colour
    assert panels[3].get_ylabel() == "RMSH"


def test_texts_found_have_marks_by_the_labels_they_share() -> None:
    _, axes = draw_found_texts(_found()).axes
    assert [line.get_marker() for line in axes.lines] == [mark.shape for mark in style.GRADES] * 2
    assert [text.get_text() for text in axes.texts] == [
        "CMFH",
        "hit 0",
        "hit 1",
        "hit 2",
        "RMSH",
        "hit 0",
        "hit 1",
        "hit 2",
    ]
