"""The two drawings that explain the paper, and the figures of points and examples."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image

from lab.paper.figures import style
from lab.paper.figures.architecture import draw_architecture
from lab.paper.figures.embedding import draw_embedding
from lab.paper.figures.example_codes import ADJACENT, KINDS, ROBUST, distance, draw_example_codes
from lab.paper.figures.retrieval import draw_found_pictures, draw_found_texts


def _similarity(one: int, other: int) -> float:
    first, second = set(KINDS[one].labels), set(KINDS[other].labels)
    return len(first & second) / max(len(first), len(second))


def test_the_robust_codes_keep_what_the_paper_asks_of_them() -> None:
    orange, both, all_three = ROBUST.codes
    assert distance(orange, both) >= 3  # they share nothing
    assert _similarity(1, 2) > _similarity(0, 2)
    assert distance(both, all_three) < distance(orange, all_three)
    balls = [{f"{n:03b}" for n in range(8) if distance(f"{n:03b}", code) <= 1} for code in (orange, both)]
    assert not balls[0] & balls[1]


def test_the_adjacent_codes_fail_as_the_paper_says() -> None:
    orange, both, all_three = ADJACENT.codes
    assert {code for _, code in ADJACENT.false} == {"101"}
    assert distance(orange, all_three) == distance(both, all_three)


def test_false_codes_are_one_bit_from_their_kind() -> None:
    for coding in (ADJACENT, ROBUST):
        assert all(distance(coding.codes[place], code) == 1 for place, code in coding.false)


def test_the_example_labels_all_corners_of_both_cubes() -> None:
    figure = draw_example_codes()
    for axes in figure.axes[1:]:
        corners = {text.get_text() for text in axes.texts}
        assert {f"{number:03b}" for number in range(8)} <= corners


def test_the_architecture_names_every_part_of_the_loss() -> None:
    (axes,) = draw_architecture().axes
    words = "\n".join(text.get_text() for text in axes.texts)
    for part in (
        "triplet loss",
        "classification loss",
        "quantisation loss",
        "pseudo-codes network",
        "\\lambda_4",
        "f_u",
    ):
        assert part in words


def _plane() -> dict[str, Any]:
    points = [[float(n), float(-n), n % 6] for n in range(12)]
    return {"classes": list("abcdef"), "points": {"image": points, "text": points[:6]}}


def test_the_plane_has_a_colour_and_a_shape_a_class() -> None:
    pictures, texts, both = draw_embedding(_plane()).axes
    assert [len(c.get_offsets()) for c in pictures.collections] == [2] * 6
    assert [len(c.get_offsets()) for c in texts.collections] == [1] * 6
    assert len(both.collections) == 12
    assert [c.get_label() for c in pictures.collections] == list("abcdef")


def _picture(colour: str) -> str:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), colour).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _found() -> dict[str, Any]:
    hits = [{"text": f"hit {n}", "picture": _picture("red"), "shared": n, "distance": n} for n in range(3)]
    query = {"text": "a <query>", "labels": ["dog", "cat"], "picture": _picture("blue")}
    return {method: {"query": query, "hits": hits} for method in ("cmfh", "rmsh")}


def test_pictures_found_have_borders_by_the_labels_they_share() -> None:
    panels = draw_found_pictures(_found()).axes
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
