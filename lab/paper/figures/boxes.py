"""Boxes, arrows and strips of cells: what a drawing of an architecture is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Box", "draw_arrow", "draw_box", "draw_strip"]


@dataclass(frozen=True)
class Box:
    """A box by its left lower corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> tuple[float, float]:
        """The middle of the left side."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> tuple[float, float]:
        """The middle of the right side."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def top(self) -> tuple[float, float]:
        """The middle of the upper side."""
        return self.x + self.width / 2, self.y + self.height

    @property
    def bottom(self) -> tuple[float, float]:
        """The middle of the lower side."""
        return self.x + self.width / 2, self.y


def draw_box(axes: Axes, box: Box, text: str, *, colour: str, dashed: bool = False, size: float = 10) -> None:
    """A round box with text in it; a dashed border says that it does not learn."""
    from matplotlib.patches import FancyBboxPatch

    patch = FancyBboxPatch(
        (box.x, box.y),
        box.width,
        box.height,
        boxstyle="round,pad=0,rounding_size=0.12",
        facecolor=colour,
        edgecolor="0.25",
        linewidth=1.2,
        linestyle="--" if dashed else "-",
    )
    axes.add_patch(patch)
    x, y = box.x + box.width / 2, box.y + box.height / 2
    axes.text(x, y, text, ha="center", va="center", fontsize=size, linespacing=1.35)


def draw_arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    bend: str = "arc3,rad=0",
    colour: str = "0.3",
    dashed: bool = False,
) -> None:
    """An arrow, straight unless told how it bends."""
    arrow = {
        "arrowstyle": "-|>",
        "connectionstyle": bend,
        "color": colour,
        "linewidth": 1.4,
        "linestyle": "--" if dashed else "-",
        "shrinkA": 1,
        "shrinkB": 1,
    }
    axes.annotate("", end, start, arrowprops=arrow)


def draw_strip(axes: Axes, box: Box, values: Sequence[float], *, colour: str, name: str) -> None:
    """A relaxed code as cells, the darker the nearer to 1, with its name to the left."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    side = box.width / len(values)
    for place, value in enumerate(values):
        share = (value + 1) / 2
        shade = tuple(1 - share * (1 - channel) for channel in to_rgb(colour))
        cell = Rectangle(
            (box.x + place * side, box.y), side, box.height, facecolor=shade, edgecolor="0.3", linewidth=0.7
        )
        axes.add_patch(cell)
    axes.text(box.x - 0.12, box.y + box.height / 2, name, ha="right", va="center", fontsize=12)
