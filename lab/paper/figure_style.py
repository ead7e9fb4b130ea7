"""The style of all figures: fonts, sizes, a colour, line and marker per method; and how figures are saved.

Lines differ in dashes and markers as well as in colour, so that a figure is readable in black and white. The palette is
that of Okabe and Ito, which is safe for colour-blind readers.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lab.paper.published import DIRECTION_TITLES, method_title
from rmsh.core.errors import require
from rmsh.core.files import atomic

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

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


_SVG_DPI, _PNG_DPI = 80, 130  # of images inside an SVG, and of a PNG
_EMBEDDED = re.compile(rb"(?<=data:image/png;base64,)[^\"]+")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and as PNG with few colours, so that both are small; return the files."""
    with applied():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # one layout for both
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", dpi=_SVG_DPI, metadata={"Date": None})
        figure.savefig(png, format="png", dpi=_PNG_DPI)
    contents = {"svg": _svg_with_few_colours(svg.getvalue()), "png": _few_colours(png.getvalue())}
    for kind, content in contents.items():
        with atomic(folder / f"{name}.{kind}") as file:
            file.write(content)
    return [folder / f"{name}.{kind}" for kind in contents]


def _svg_with_few_colours(svg: bytes) -> bytes:
    return _EMBEDDED.sub(lambda found: base64.b64encode(_few_colours(base64.b64decode(found[0]))), svg)


def _few_colours(png: bytes) -> bytes:
    """A PNG reduced to 256 colours: a third of the size, and looks the same.

    Example:
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGBA", (4, 2), "red").save(file, "PNG")
        >>> with Image.open(io.BytesIO(_few_colours(file.getvalue()))) as image:
        ...     print(image.mode, image.size, image.convert("RGB").getpixel((0, 0)))
        P (4, 2) (255, 0, 0)
    """
    from PIL import Image

    file = io.BytesIO()
    with Image.open(io.BytesIO(png)) as opened:
        opened.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()
