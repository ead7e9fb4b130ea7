"""The paper's Figure 2, drawn anew: frozen encoders, two hash networks, the pseudo-codes network, and the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.paper.figures import style
from lab.paper.figures.boxes import Box, draw_arrow, draw_box, draw_strip
from lab.paper.figures.fruit import draw_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_architecture"]

_FROZEN, _LEARNED, _LOSS = "#E8E8E8", "#DCEBF7", "#FBE9D0"
_IMAGE, _TEXT, _PSEUDO = style.BLUE, style.VERMILION, style.GREEN

_TRIPLET = (
    (("orange", "apple"), "“An orange\nand an apple”"),
    (("apple", "banana"), "“Apple and\nbanana”"),
    (("orange",), "“One ripe\norange”"),
)
# Relaxed codes of the three items and of the two fusions: numbers for the eye.
_CODES = (
    (0.9, -0.8, 0.7, 0.9, -0.9, 0.2, -0.7, 0.8),
    (-0.8, -0.9, 0.8, 0.6, -0.7, 0.9, 0.7, 0.9),
    (0.9, 0.7, -0.8, -0.6, -0.9, -0.8, -0.9, 0.8),
    (0.8, -0.9, 0.9, 0.9, -0.9, 0.8, 0.6, 0.9),
    (-0.6, -0.9, 0.9, 0.8, -0.9, 0.1, -0.2, 0.9),
)
_IMAGE_BOXES = (Box(2.75, 7.2, 1.6, 1.3), Box(5.0, 6.95, 1.1, 1.8), Box(6.35, 7.2, 0.9, 1.3))
_TEXT_BOXES = (Box(2.75, 1.9, 1.6, 1.3), Box(5.0, 1.65, 1.1, 1.8), Box(6.35, 1.9, 0.9, 1.3))
_TRIPLET_LOSS = Box(13.0, 6.6, 4.3, 2.0)
_CLASS_LOSS = Box(13.0, 3.95, 4.3, 2.0)
_QUANTISATION = Box(13.0, 1.65, 4.3, 1.65)
_DELTA = Box(9.3, 9.6, 3.0, 0.85)
_UNION, _INTERSECTION = Box(8.2, 5.3, 1.0, 0.62), Box(8.2, 4.35, 1.0, 0.62)
_PSEUDO_STRIPS = (Box(9.95, 5.43, 2.0, 0.36), Box(9.95, 4.48, 2.0, 0.36))


def draw_architecture() -> Figure:
    """A triplet of pairs on the left, codes in the middle, the loss on the right."""
    figure = style.new_figure(13.6, 8.0)
    axes = figure.subplots()
    axes.set(xlim=(-0.1, 17.6), ylim=(0.5, 10.6), aspect="equal")
    axes.set_axis_off()
    _draw_triplet(axes)
    _draw_network(axes, _IMAGE_BOXES, "CNN", "x")
    _draw_network(axes, _TEXT_BOXES, "text\nencoder", "y")
    codes = [_draw_codes(axes, top, name) for top, name in ((8.35, "x"), (3.05, "y"))]
    _draw_pseudo(axes)
    _draw_losses(axes)
    _draw_flow(axes, codes)
    _draw_delta(axes)
    return figure


def _draw_triplet(axes: Axes) -> None:
    for place, (fruits, caption) in enumerate(_TRIPLET):
        draw_picture(axes, fruits, centre=(0.85 + 0.12 * place, 8.95 - 1.05 * place), side=0.95)
        axes.text(1.9, 8.95 - 1.05 * place, f"$x_{place + 1}$", va="center", fontsize=13)
        axes.text(0.92, 3.55 - 1.0 * place, caption, ha="center", va="center", style="italic", fontsize=10)
        axes.text(1.9, 3.55 - 1.0 * place, f"$y_{place + 1}$", va="center", fontsize=13)
    axes.text(
        0.95, 5.35, "a triplet of pairs,\nwith label sets\n$l_1$, $l_2$, $l_3$", ha="center", va="center", fontsize=11
    )


def _draw_network(axes: Axes, boxes: Sequence[Box], encoder: str, modality: str) -> None:
    frozen, hidden, output = boxes
    draw_box(axes, frozen, f"{encoder}\n(frozen)", colour=_FROZEN, dashed=True, size=11)
    draw_box(axes, hidden, "1024\ntanh", colour=_LEARNED, size=11)
    draw_box(axes, output, "$K$\ntanh", colour=_LEARNED, size=11)
    draw_arrow(axes, (2.25, frozen.left[1]), frozen.left)
    draw_arrow(axes, frozen.right, hidden.left)
    draw_arrow(axes, hidden.right, output.left)
    axes.text(4.64, frozen.left[1] + 0.28, f"$D^{{({modality})}}$", ha="center", fontsize=11)
    words = "image hashing network" if modality == "x" else "text hashing network"
    axes.text(6.1, hidden.y + hidden.height + 0.18, words, ha="center", weight="bold", fontsize=11)


def _draw_codes(axes: Axes, top: float, modality: str) -> list[Box]:
    """The relaxed codes of the three items of a modality, from the top down; returns where they are."""
    colour = _IMAGE if modality == "x" else _TEXT
    strips = [Box(8.65, top - 0.55 * place, 2.4, 0.36) for place in range(3)]
    for place, strip in enumerate(strips):
        name = f"$z_{place + 1}^{{({modality})}}$"
        draw_strip(axes, strip, _CODES[place], colour=colour, name=name)
    return strips


def _draw_pseudo(axes: Axes) -> None:
    """The pseudo-codes network: the union and the intersection of two label sets, for each modality."""
    draw_box(axes, Box(7.75, 4.1, 4.55, 2.3), "", colour="#EAF5EF")
    axes.text(10.0, 6.12, "pseudo-codes network, for x and for y", ha="center", weight="bold", fontsize=10)
    for box, name in ((_UNION, "$f_u$"), (_INTERSECTION, "$f_t$")):
        draw_box(axes, box, name, colour="white", size=13)
    for place, (strip, label) in enumerate(zip(_PSEUDO_STRIPS, ("$l_1 \\cup l_2$", "$l_1 \\cap l_2$"), strict=True)):
        draw_strip(axes, strip, _CODES[3 + place], colour=_PSEUDO, name=f"$z_{4 + place}$")
        axes.text(strip.right[0] - 0.02, strip.y - 0.22, label, ha="right", va="center", fontsize=10)
    for box, strip in ((_UNION, _PSEUDO_STRIPS[0]), (_INTERSECTION, _PSEUDO_STRIPS[1])):
        draw_arrow(axes, box.right, (strip.x - 0.42, strip.left[1]))


def _draw_losses(axes: Axes) -> None:
    """What is minimised, with the weights as the paper names them."""
    triplet = (
        "$\\lambda_1$ within a modality, $\\lambda_2$ across\n"
        "share nothing: $[\\delta - d]_+$\n"
        "share more, less: $[d_1 - d_2 + \\delta\\,(S_1 - S_2)]_+$"
    )
    classes = (
        "labels from codes by one layer $K \\to C$\n$z_1, z_2, z_3$ with weight 1\n$z_4, z_5$ with weight $\\lambda_3$"
    )
    quantisation = "$\\lambda_4\\,(\\|z^{(x)} - b\\|^2 + \\|z^{(y)} - b\\|^2)$\n$b = \\mathrm{sgn}(z^{(x)} + z^{(y)})$"
    for box, title, text in (
        (_TRIPLET_LOSS, "margin-adaptive triplet loss", triplet),
        (_CLASS_LOSS, "weighted classification loss", classes),
        (_QUANTISATION, "quantisation loss", quantisation),
    ):
        draw_box(axes, box, f"\n{text}", colour=_LOSS, size=10.5)
        x, y = box.top
        axes.text(x, y - 0.2, title, ha="center", va="top", weight="bold", fontsize=10.5)


def _draw_flow(axes: Axes, codes: Sequence[Sequence[Box]]) -> None:
    """From networks to codes, from codes to the pseudo-codes network, and from all codes to the loss."""
    for boxes, strips in zip((_IMAGE_BOXES, _TEXT_BOXES), codes, strict=True):
        draw_arrow(axes, boxes[2].right, (7.95, boxes[2].right[1]))
        for strip in strips:
            axes.plot([strip.right[0] + 0.08, 12.55], [strip.right[1]] * 2, color="0.3", linewidth=1.0)
    draw_arrow(axes, (8.35, 7.15), (8.35, 6.45), colour=_IMAGE)
    draw_arrow(axes, (8.35, 3.4), (8.35, 4.05), colour=_TEXT)
    for y in (6.8, 3.7):
        axes.text(8.55, y, "$z_1$, $z_2$", va="center", fontsize=11)
    for strip in _PSEUDO_STRIPS:
        axes.plot([strip.right[0] + 0.08, 12.55], [strip.right[1]] * 2, color="0.3", linewidth=1.0)
    axes.plot([12.55, 12.55], [codes[1][2].right[1], codes[0][0].right[1]], color="0.3", linewidth=2.2)
    for box in (_TRIPLET_LOSS, _CLASS_LOSS, _QUANTISATION):
        draw_arrow(axes, (12.55, box.left[1]), box.left)


def _draw_delta(axes: Axes) -> None:
    """Delta comes from the labels before anything is learned."""
    labels = Box(2.75, 9.6, 4.3, 0.85)
    draw_box(axes, labels, "labels of the training set: $H(L)$, $H(S)$", colour=_FROZEN, dashed=True, size=10.5)
    draw_box(axes, _DELTA, "lower ≤ $\\delta$ ≤ upper bound", colour=_FROZEN, dashed=True, size=10.5)
    draw_arrow(axes, labels.right, _DELTA.left, dashed=True)
    draw_arrow(axes, _DELTA.right, _TRIPLET_LOSS.top, bend="angle,angleA=0,angleB=90,rad=8", dashed=True)
    axes.text(15.3, 9.45, "robust parameter $\\delta$", fontsize=10.5, va="center")
    axes.text(13.0, 0.85, "dashed: fixed before learning", fontsize=10, color="0.3", va="center")
