"""The paper's Figure 1, drawn anew: three kinds of items in a space of three bits, without and with a minimum distance.

Without one, an item with a wrong bit may get the code of another kind. With delta = 3 the codes within one bit of
"orange" and those within one bit of "apple, banana" share no corner of the cube, so a wrong bit mixes nothing up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.paper.figures import style
from lab.paper.figures.fruit import draw_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ADJACENT", "KINDS", "ROBUST", "Coding", "Kind", "distance", "draw_example_codes"]

_FALSE = style.GRADES[0].colour


@dataclass(frozen=True)
class Kind:
    """Items with the same labels: what they show, how their captions read, and the marker of their code."""

    labels: tuple[str, ...]
    caption: str
    marker: str
    colour: str

    @property
    def name(self) -> str:
        """Its labels, with commas."""
        return ", ".join(self.labels)


KINDS = (
    Kind(("orange",), "“One ripe orange”", "o", style.ORANGE),
    Kind(("apple", "banana"), "“Apple and banana\nfor the break”", "s", style.BLUE),
    Kind(("orange", "apple", "banana"), "“A bowl of\nthree fruits”", "D", style.GREEN),
)


@dataclass(frozen=True)
class Coding:
    """A code for each kind, and false codes: what a wrong bit makes of the code of a kind.

    Args:
        codes: for each of KINDS, three bits.
        false: (place in KINDS, the false code).
        title: over the cube.
        remarks: under it.
    """

    codes: tuple[str, str, str]
    false: tuple[tuple[int, str], ...]
    title: str
    remarks: tuple[str, ...]


ADJACENT = Coding(
    ("100", "111", "110"),
    ((0, "101"), (1, "101")),
    "(a) similar or not, no minimum distance",
    (
        "one wrong bit of “orange” and one of “apple, banana” meet at 101",
        "“orange, apple, banana” is 1 bit from both of the others, though it shares more with one",
    ),
)
ROBUST = Coding(
    ("100", "011", "010"),
    ((0, "101"), (1, "111")),
    "(b) graded similarity, δ = 3",
    (
        "“orange” and “apple, banana” are 3 bits apart: the codes one bit from either, with round and with "
        "square corners, never meet",
        "“orange, apple, banana” is 1 bit from “apple, banana” and 2 from “orange”",
    ),
)


def distance(one: str, other: str) -> int:
    """The Hamming distance of two codes that are written as digits.

    Example:
        >>> distance("100", "011")
        3
    """
    return sum(a != b for a, b in zip(one, other, strict=True))


def draw_example_codes() -> Figure:
    """The data with its similarities, and a cube for each of the two codings."""
    figure = style.new_figure(13.2, 5.0)
    items, adjacent, robust = figure.subplots(1, 3, width_ratios=(0.86, 1, 1))
    _draw_items(items)
    for axes, coding in ((adjacent, ADJACENT), (robust, ROBUST)):
        _draw_cube(axes, coding)
    return figure


def _blank(axes: Axes, title: str, *, width: tuple[float, float], height: tuple[float, float]) -> None:
    axes.set(xlim=width, ylim=height, aspect="equal", anchor="N")
    axes.set_axis_off()
    axes.set_title(title)


def _draw_items(axes: Axes) -> None:
    """A picture and a caption of each kind, and how similar the kinds are."""
    _blank(axes, "pictures and texts with labels", width=(-2.5, 1.75), height=(-2.15, 1.85))
    heights = (1.25, 0.0, -1.25)
    for kind, y in zip(KINDS, heights, strict=True):
        draw_picture(axes, kind.labels, centre=(-1.05, y), side=0.86)
        axes.text(-0.5, y + 0.12, kind.caption, va="center", style="italic")
        axes.plot(-0.42, y - 0.3, kind.marker, color=kind.colour, markeredgecolor="black", markersize=9)
        axes.text(-0.3, y - 0.3, kind.name, va="center", weight="bold", fontsize=10)
    for one, other, bow in ((0, 1, 0.0), (1, 2, 0.0), (0, 2, 0.42)):
        _draw_similarity(axes, (one, heights[one]), (other, heights[other]), bow=bow)
    for x, marker in ((-1.42, "o"), (-1.24, "s")):
        axes.plot(x, -1.98, marker, color=_FALSE, markeredgecolor="black", markersize=9)
    axes.text(-1.1, -1.98, "red: a false code, one bit is wrong", va="center", fontsize=10)


def _draw_similarity(axes: Axes, top: tuple[int, float], bottom: tuple[int, float], *, bow: float) -> None:
    """S = shared labels / labels of the larger set, on a line to the left of the pictures, bowed by so much."""
    (one, upper), (other, lower) = top, bottom
    first, second = set(KINDS[one].labels), set(KINDS[other].labels)
    shared, largest = len(first & second), max(len(first), len(second))
    x, gap = (-1.58, 0.22) if bow else (-1.72, 0.1)
    arrow = {"arrowstyle": "<->", "connectionstyle": f"arc3,rad={bow}", "color": "0.4", "linewidth": 1.1}
    axes.annotate(
        "", (x, lower - gap if bow else lower + gap), (x, upper + gap if bow else upper - gap), arrowprops=arrow
    )
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    words = f"S = {shared}/{largest}" if shared else "S = 0"
    left = x - bow * (upper - lower + 2 * gap) / 2
    axes.text(left, (upper + lower) / 2, words, ha="center", va="center", fontsize=10, bbox=box)


# Where the corners of a cube are on paper: the first bit goes right, the second up, the third into the depth.
def _corner(code: str) -> tuple[float, float]:
    right, up, deep = (int(bit) for bit in code)
    return right * 1.3 + deep * 0.62, up * 1.3 + deep * 0.48


_CORNERS = tuple(f"{number:03b}" for number in range(8))


def _draw_cube(axes: Axes, coding: Coding) -> None:
    _blank(axes, coding.title, width=(-0.62, 2.55), height=(-0.95, 2.25))
    for one in _CORNERS:
        for other in _CORNERS:
            if one < other and distance(one, other) == 1:
                hidden = "001" in (one, other)  # the corner behind all others
                x, y = zip(_corner(one), _corner(other), strict=True)
                axes.plot(x, y, color="0.72" if hidden else "0.45", linestyle=":" if hidden else "-", linewidth=1.2)
    false = [code for _, code in coding.false]
    for corner in _CORNERS:
        if corner not in coding.codes and corner not in false:
            axes.plot(*_corner(corner), **_free_corner(corner, coding))
    _draw_false(axes, coding)
    _draw_codes(axes, coding)
    _label_corners(axes, {**dict.fromkeys(_CORNERS, "0.45"), **dict.fromkeys((*coding.codes, *false), "black")})
    _write_remarks(axes, coding.remarks)


def _free_corner(corner: str, coding: Coding) -> dict[str, Any]:
    """The marker of a code that no item has: small, and of the kind it is one bit from where it is only one kind."""
    near = [kind for kind, code in zip(KINDS[:2], coding.codes, strict=False) if distance(corner, code) == 1]
    kind = near[0] if len(near) == 1 and coding is ROBUST else None
    edge, marker = (kind.colour, kind.marker) if kind else ("0.45", "o")
    return {"marker": marker, "color": "white", "markeredgecolor": edge, "markeredgewidth": 1.8, "markersize": 8}


def _draw_codes(axes: Axes, coding: Coding) -> None:
    for kind, code in zip(KINDS, coding.codes, strict=True):
        axes.plot(*_corner(code), kind.marker, color=kind.colour, markeredgecolor="black", markersize=14, zorder=4)


def _draw_false(axes: Axes, coding: Coding) -> None:
    """A red marker of the kind it comes from; where two kinds meet, each stands a little back on its own edge."""
    for place, code in coding.false:
        meeting = sum(other == code for _, other in coding.false) > 1
        (x, y), (from_x, from_y) = _corner(code), _corner(coding.codes[place])
        back = 0.13 / ((from_x - x) ** 2 + (from_y - y) ** 2) ** 0.5 if meeting else 0.0
        at = (x + back * (from_x - x), y + back * (from_y - y))
        arrow = {"arrowstyle": "-|>", "color": _FALSE, "linewidth": 2, "shrinkA": 9, "shrinkB": 8}
        axes.annotate("", at, (from_x, from_y), arrowprops=arrow, zorder=3)
        axes.plot(*at, KINDS[place].marker, color=_FALSE, markeredgecolor="black", markersize=13, zorder=4)


def _label_corners(axes: Axes, colours: Mapping[str, str]) -> None:
    for code, colour in colours.items():
        x, y = _corner(code)
        front = code[2] == "0"
        axes.text(
            x + (-0.14 if front else 0.15),
            y - 0.17 if front else y + 0.15,
            code,
            ha="right" if front else "left",
            va="center",
            color=colour,
            weight="bold" if colour == "black" else "normal",
            family="monospace",
        )


def _write_remarks(axes: Axes, remarks: Sequence[str]) -> None:
    from textwrap import fill

    text = "\n".join(f"• {fill(remark, 52, subsequent_indent='  ')}" for remark in remarks)
    axes.text(-0.6, -0.38, text, va="top", fontsize=9.5, linespacing=1.35)
