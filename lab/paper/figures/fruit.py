"""Three small fruits for the example of three-bit codes: an orange, an apple and a banana, drawn as shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_picture"]

_EDGE = "0.15"
_LEAF, _STEM = "#4F8F3A", "#6B4A2B"


def draw_picture(axes: Axes, fruits: Sequence[str], *, centre: tuple[float, float], side: float) -> None:
    """Draw a framed picture of one to three fruits beside each other."""
    from matplotlib.patches import FancyBboxPatch

    x, y = centre
    frame = FancyBboxPatch(
        (x - side / 2, y - side / 2),
        side,
        side,
        boxstyle=f"round,pad=0,rounding_size={side * 0.08}",
        facecolor="#F7F4EC",
        edgecolor="0.35",
        linewidth=1,
    )
    axes.add_patch(frame)
    places = {1: [(0.0, 0.0)], 2: [(-0.2, 0.12), (0.17, -0.2)], 3: [(-0.22, 0.2), (0.24, 0.18), (0.0, -0.24)]}
    size = side * {1: 0.62, 2: 0.46, 3: 0.4}[len(fruits)]
    for fruit, (dx, dy) in zip(fruits, places[len(fruits)], strict=True):
        _DRAW[fruit](axes, x + dx * side, y + dy * side, size)


def _draw_orange(axes: Axes, x: float, y: float, size: float) -> None:
    from matplotlib.patches import Circle, Ellipse

    axes.add_patch(Circle((x, y), size / 2, facecolor="#F39C2B", edgecolor=_EDGE, linewidth=0.8))
    axes.add_patch(Circle((x, y + size * 0.3), size * 0.045, facecolor=_STEM, edgecolor="none"))
    leaf = Ellipse((x + size * 0.17, y + size * 0.42), size * 0.3, size * 0.13, angle=25)
    leaf.set(facecolor=_LEAF, edgecolor=_EDGE, linewidth=0.6)
    axes.add_patch(leaf)


def _draw_apple(axes: Axes, x: float, y: float, size: float) -> None:
    from matplotlib.patches import Ellipse, PathPatch
    from matplotlib.path import Path

    points = [(0, 0.3), (0.2, 0.48), (0.56, 0.4), (0.5, -0.05), (0.45, -0.38), (0.2, -0.58), (0, -0.44)]
    mirrored = [(-px, py) for px, py in reversed(points[:-1])]
    vertices = [(x + px * size, y + py * size) for px, py in (*points, *mirrored)]
    outline = Path(vertices, [Path.MOVETO, *[Path.CURVE4] * (len(vertices) - 1)])
    axes.add_patch(PathPatch(outline, facecolor="#C8372D", edgecolor=_EDGE, linewidth=0.8))
    axes.plot([x, x + size * 0.05], [y + size * 0.28, y + size * 0.52], color=_STEM, linewidth=1.4)
    leaf = Ellipse((x + size * 0.2, y + size * 0.5), size * 0.28, size * 0.12, angle=25)
    leaf.set(facecolor=_LEAF, edgecolor=_EDGE, linewidth=0.6)
    axes.add_patch(leaf)


def _draw_banana(axes: Axes, x: float, y: float, size: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    outer = [(-0.52, 0.3), (-0.42, -0.35), (0.2, -0.62), (0.56, 0.02)]
    inner = [(0.5, 0.08), (0.14, -0.2), (-0.22, -0.1), (-0.42, 0.34)]
    vertices = [(x + px * size, y + py * size) for px, py in (*outer, *inner)]
    vertices.append(vertices[0])
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    axes.add_patch(PathPatch(Path(vertices, codes), facecolor="#F4D03F", edgecolor=_EDGE, linewidth=0.8))


_DRAW: dict[str, Callable[[Axes, float, float, float], None]] = {
    "orange": _draw_orange,
    "apple": _draw_apple,
    "banana": _draw_banana,
}
