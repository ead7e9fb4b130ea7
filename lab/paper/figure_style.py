"""The style of all figures: fonts, sizes, a colour, line and marker per method; and how figures are saved.

Lines differ in dashes and markers as well as in colour, so that a figure is readable in black and white. The palette is
that of Okabe and Ito, which is safe for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lab.paper.published import DIRECTION_TITLES, method_title
from rmsh.core.errors import require
from rmsh.core.files import atomic

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]  # as in matplotlib

BLACK, GREY, ORANGE, SKY, GREEN = "#000000", "#8C8C8C", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
VIOLET = "#4B1D7A"  # not theirs; darker than all of them but black

DIRECTION_LINES: dict[str, dict[str, Any]] = {
    "i2t": {"label": DIRECTION_TITLES["i2t"], "color": BLACK, "linestyle": "-", "marker": "o"},
    "t2i": {
        "label": DIRECTION_TITLES["t2i"],
        "color": VERMILION,
        "linestyle": "--",
        "marker": "s",
        "markerfacecolor": "white",
    },
}
RANDOM: dict[str, Any] = {"label": "random", "color": "0.35", "linewidth": 1.3, "linestyle": (0, (1, 1.5))}

_DPI = 130  # of a PNG, and of images inside an SVG
_SETTINGS: dict[str, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "axes.grid": True,
    "grid.color": "0.88",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "rmsh",  # the same figure gives the same file
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Look:
    """The title, colour, line and marker of a method."""

    title: str
    colour: str
    line: Dashes
    marker: str

    def line_options(self) -> dict[str, Any]:
        """Keyword arguments of ``Axes.plot``."""
        face = self.colour if self.title == "RMSH" else "white"
        return {
            "label": self.title,
            "color": self.colour,
            "linestyle": self.line,
            "marker": self.marker,
            "markerfacecolor": face,
            "linewidth": 2.4 if self.title == "RMSH" else 1.6,
        }


_DASH_DOT_DOT = (0, (5, 1, 1, 1, 1, 1))
_LONG_DASH = (0, (8, 2))
_SPARSE = (0, (1, 3))
_LINES: dict[str, tuple[str, Dashes, str]] = {  # colour, line, marker
    "cmfh": (GREY, ":", "v"),
    "uch": (SKY, "-.", "P"),
    "seph": (ORANGE, _DASH_DOT_DOT, "^"),
    "dcmh": (PURPLE, "--", "s"),
    "tdh": (GREEN, "-.", "D"),
    "ssah": (BLUE, _LONG_DASH, "X"),
    "svhn": (VERMILION, "--", "p"),
    "rmsh": (BLACK, "-", "o"),
    "glint": (VIOLET, "-", "h"),
    "nest": (VIOLET, "--", "8"),
    "scm": (GREY, _LONG_DASH, "<"),
    "cca-itq": (GREY, _SPARSE, ">"),
    "classifier-itq": (GREY, "-.", "*"),
    "cca-cosine": (BLACK, _SPARSE, "1"),
    "logistic": (BLACK, (0, (4, 4)), "2"),
    "mlp": (BLACK, (0, (10, 3, 2, 3)), "3"),
}


@dataclass(frozen=True)
class Mark:
    """Colour, shape and legend of a hit, by the number of labels it shares with its query."""

    colour: str
    shape: str
    words: str


# The paper's red, blue and green, in shades that also differ in black and white; indexed by shared labels.
GRADES = (
    Mark("#C2281D", "X", "shares no label"),
    Mark("#2B6CC4", "s", "shares one label"),
    Mark("#12854A", "o", "shares two labels or more"),
)


def look(method: str) -> Look:
    """The look of a method; an unknown method gets a grey line.

    Example:
        >>> look("seph").title, look("mine").title
        ('SePH', 'mine')
    """
    return Look(method_title(method), *_LINES.get(method, (GREY, "-", ".")))


@contextmanager
def applied() -> Iterator[None]:
    """Apply the style to all figures drawn inside the block."""
    matplotlib = require("matplotlib", "plots")
    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, its size in inches."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


# Where a label may stand, as offset from its point in units of its distance: beside, above and below, obliquely.
_PLACES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 0.8), (1, -0.8), (-1, 0.8), (-1, -0.8)]
_DISTANCES = (8, 15, 24, 36, 50)  # in points; a thin line leads to a label that is not at the first


def label_points(axes: Axes) -> None:
    """Write the label of each point next to it, where it covers neither points nor other labels if there is room.

    The layout of the figure must be final: call ``figure.draw_without_rendering()`` before.
    """
    inside, taken = axes.get_window_extent(), [line.get_window_extent().padded(2) for line in axes.lines]
    places = [(distance, *place) for distance in _DISTANCES for place in _PLACES]
    for line in sorted(axes.lines, key=lambda line: -len(str(line.get_label()))):  # short ones fit into small gaps
        x, y = np.asarray(line.get_xydata())[0].tolist()
        texts = [_near(axes, (x, y), place, text=str(line.get_label())) for place in places]
        boxes = [text.get_window_extent() for text in texts]
        outside = [box.x0 < inside.x0 or box.x1 > inside.x1 for box in boxes]
        hidden = [sum(map(box.overlaps, taken)) + 10 * out for box, out in zip(boxes, outside, strict=True)]
        best = int(np.argmin(hidden))
        taken.append(boxes[best])
        for text in texts[:best] + texts[best + 1 :]:
            text.remove()
        if places[best][0] > _DISTANCES[0]:
            arrow = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
            _near(axes, (x, y), places[best], arrowprops=arrow)


def label_ends(axes: Axes) -> None:
    """Write the label of each line at its right end, in their order and apart from each other."""
    bottom, top = axes.get_ylim()
    height = 9.0 * axes.figure.dpi / 72 / axes.get_window_extent().height  # of a label, as a fraction of the axes
    ends = sorted((float(np.asarray(line.get_ydata())[-1]), str(line.get_label())) for line in axes.lines)
    levels = [(value - bottom) / (top - bottom) for value, _ in ends]
    for level, (value, label) in zip(spread(levels, height), ends, strict=True):
        arrow = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "axes fraction"}
        axes.annotate(label, (1.0, value), (1.05, level), va="center", fontsize=8, arrowprops=arrow, **place)


def spread(levels: Sequence[float], height: float) -> list[float]:
    """Ascending levels between 0 and 1, moved as little as possible (least squares) to be a height apart.

    Example:
        >>> spread([0.2, 0.24, 0.9], 0.1), spread([0.9, 0.95], 0.2)
        ([0.17, 0.27, 0.9], [0.8, 1.0])
    """
    from sklearn.isotonic import isotonic_regression

    below = height * np.arange(len(levels))
    free = isotonic_regression(np.asarray(levels) - below, y_min=0.0, y_max=1.0 - height * (len(levels) - 1))
    return [round(float(level), 6) for level in free + below]


def _near(
    axes: Axes, point: tuple[float, float], place: tuple[float, float, float], text: str = "", **options: Any
) -> Annotation:
    distance, across, up = place
    alignment = {1: "left", 0: "center", -1: "right"}[int(across)]
    offset = (across * distance, up * distance)
    options |= {"textcoords": "offset points", "ha": alignment, "va": "center", "fontsize": 8}
    return axes.annotate(text, point, offset, **options)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG with the same layout; return the files."""
    paths = [folder / f"{name}.svg", folder / f"{name}.png"]
    with applied():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for path in paths:
            with atomic(path) as file:
                options: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
                figure.savefig(file, format=path.suffix[1:], dpi=_DPI, **options)
    return paths
