"""One look for all figures: fonts, sizes, and for each method a colour, a line and a marker.

Lines differ in dashes and markers as well as in colour, so that a figure is readable in black and white; the colours
are those of Okabe and Ito, which people with any colour vision tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lab.paper.names import DIRECTION_TITLES, title_of
from rmsh.core.errors import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "DIRECTION_LINES",
    "GRADES",
    "RANDOM",
    "Look",
    "Mark",
    "applied",
    "look",
    "new_figure",
]

Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]  # as matplotlib takes them

BLACK, GREY, ORANGE, SKY, GREEN = "#000000", "#8C8C8C", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
VIOLET = "#4B1D7A"  # darker than any of theirs but black

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
    "svg.hashsalt": "rmsh",  # the same figure is the same file
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Look:
    """How a method is named and drawn."""

    title: str
    colour: str
    line: Dashes
    marker: str

    def line_options(self) -> dict[str, Any]:
        """What ``Axes.plot`` takes."""
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
    "scm": (GREY, _LONG_DASH, "<"),
    "cca-itq": (GREY, _SPARSE, ">"),
    "classifier-itq": (GREY, "-.", "*"),
    "cca-cosine": (BLACK, _SPARSE, "1"),
    "logistic": (BLACK, (0, (4, 4)), "2"),
    "mlp": (BLACK, (0, (10, 3, 2, 3)), "3"),
}


@dataclass(frozen=True)
class Mark:
    """How a hit is marked by the labels it shares with its query: a colour, a shape and words."""

    colour: str
    shape: str
    words: str


# The paper's red, blue and green, in shades that differ in black and white too; shared labels -> mark.
GRADES = (
    Mark("#C2281D", "X", "shares no label"),
    Mark("#2B6CC4", "s", "shares one label"),
    Mark("#12854A", "o", "shares two labels or more"),
)


def look(method: str) -> Look:
    """How a method is drawn; one that is not known gets a thin grey line.

    Example:
        >>> look("seph").title, look("mine").title
        ('SePH', 'mine')
    """
    return Look(title_of(method), *_LINES.get(method, (GREY, "-", ".")))


@contextmanager
def applied() -> Iterator[None]:
    """The look of all figures that are drawn inside the block."""
    matplotlib = require("matplotlib", "plots")
    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
