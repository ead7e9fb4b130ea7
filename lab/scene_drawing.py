"""Drawing generated scenes: icons in matching colours, without overlap, with smooth edges."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from math import cos, radians, sin
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from rmsh.core.errors import MissingExtraError, install_command

_PACKAGE = "fontawesomefree"
_FILES = "fontawesomefree/static/fontawesomefree"
_MASTER = 384  # pixels; each icon is drawn once at this size, then shrunk
_MARGIN = 10  # pixels around it
_STEP = 4  # pixels between the sizes of shrunk icons

Colour = tuple[int, int, int]
Place = tuple[float, float, float]  # centre and side of a square, relative to the side of the image


# Layouts for one to four objects, in squares that do not overlap; they may be mirrored.
LAYOUTS: dict[int, tuple[tuple[Place, ...], ...]] = {
    1: (((0.5, 0.5, 0.8),), ((0.45, 0.54, 0.66),)),
    2: (
        ((0.27, 0.5, 0.46), (0.73, 0.5, 0.46)),
        ((0.5, 0.27, 0.46), (0.5, 0.73, 0.46)),
        ((0.28, 0.3, 0.5), (0.75, 0.76, 0.42)),
    ),
    3: (
        ((0.28, 0.3, 0.42), (0.74, 0.3, 0.42), (0.5, 0.74, 0.44)),
        ((0.34, 0.5, 0.58), (0.81, 0.26, 0.34), (0.81, 0.72, 0.34)),
    ),
    4: (
        ((0.27, 0.27, 0.44), (0.73, 0.27, 0.44), (0.27, 0.73, 0.44), (0.73, 0.73, 0.44)),
        ((0.36, 0.36, 0.58), (0.83, 0.26, 0.32), (0.83, 0.66, 0.32), (0.34, 0.82, 0.32)),
    ),
}


@dataclass(frozen=True)
class Style:
    """The colours of a scene: two for the background, contrasting inks, and the name of the background."""

    ground: tuple[Colour, Colour]
    inks: tuple[Colour, ...]
    name: str


HUES = ("pink", "orange", "yellow", "green", "turquoise", "blue", "violet", "purple")
_ANGLES = (5, 55, 95, 145, 190, 245, 290, 330)  # of these hues, in degrees of OKLCH


@cache
def make_style(hue: int, *, dark: bool) -> Style:
    """A light or dark background in one of eight hues, with inks of opposite and similar hues."""
    angle = _ANGLES[hue]
    light, pale, ink = (0.32, 0.26, 0.86) if dark else (0.95, 0.89, 0.48)
    ground = _colour(light, 0.045, angle), _colour(pale, 0.06, angle + 25)
    inks = tuple(_colour(ink, 0.13, angle + turn) for turn in (180, 140, 220, 20))
    return Style(ground, inks, f"{'dark' if dark else 'pale'} {HUES[hue]}")


_TO_CONES = np.array(
    [
        [1, 0.3963377774, 0.2158037573],
        [1, -0.1055613458, -0.0638541728],
        [1, -0.0894841775, -1.291485548],
    ]
)
_TO_LIGHT = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)


def _colour(lightness: float, chroma: float, degrees: float) -> Colour:
    """OKLCH to sRGB: equal lightness looks equally light in every hue."""
    a, b = chroma * cos(radians(degrees)), chroma * sin(radians(degrees))
    linear = np.clip(_TO_LIGHT @ (_TO_CONES @ [lightness, a, b]) ** 3, 0, 1)
    red, green, blue = np.round(
        255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    )
    return int(red), int(green), int(blue)


@cache
def draw_ground(style: Style, side: int) -> Image.Image:
    """A soft light from the upper left in the two colours of the background."""
    across = np.linspace(0, 1, side)
    distance = np.hypot(across[None, :] - 0.3, across[:, None] - 0.25)
    grey = Image.fromarray(np.uint8(255 * np.clip(distance / 1.05, 0, 1)))
    return ImageOps.colorize(grey, *style.ground)


def draw_icon(icon: str, degrees: float, size: float) -> Image.Image:
    """The rotated shape of an icon, as large as fits into a square."""
    width, height = _master(icon).size
    angle = radians(abs(degrees))
    largest = max(width * cos(angle) + height * sin(angle), width * sin(angle) + height * cos(angle))
    # Sizes are rounded down to steps, so that each icon is shrunk only a few times.
    longer = int(size * max(width, height) / largest) // _STEP * _STEP
    return _shrunk(icon, max(longer, _STEP)).rotate(degrees, Image.Resampling.BICUBIC, expand=True)


@lru_cache(maxsize=4096)
def _shrunk(icon: str, longer: int) -> Image.Image:
    master = _master(icon)
    scale = longer / max(master.size)
    shape = max(round(master.width * scale), 1), max(round(master.height * scale), 1)
    return master.resize(shape, Image.Resampling.LANCZOS)


@cache
def _master(icon: str) -> Image.Image:
    """The shape of an icon with a margin, which keeps its edges smooth when it is rotated."""
    folder, letters = icon_files()
    font = ImageFont.truetype(str(folder / "webfonts" / "fa-solid-900.ttf"), _MASTER)
    left, top, right, bottom = font.getbbox(letters[icon])
    canvas = Image.new("L", (round(right - left) + 2 * _MARGIN, round(bottom - top) + 2 * _MARGIN))
    ImageDraw.Draw(canvas).text((_MARGIN - left, _MARGIN - top), letters[icon], fill=255, font=font)
    return canvas


@cache
def icon_files() -> tuple[Path, dict[str, str]]:
    """The folder of the installed icons, and the letter of each icon in their font."""
    try:
        folder = Path(str(distribution(_PACKAGE).locate_file(_FILES)))
    except PackageNotFoundError as error:
        raise MissingExtraError(
            f"The package {_PACKAGE} with the icons is not installed; run: {install_command('scenes')}"
        ) from error
    icons = json.loads((folder / "metadata" / "icons.json").read_text(encoding="utf-8"))
    return folder, {name: chr(int(icon["unicode"], 16)) for name, icon in icons.items()}
