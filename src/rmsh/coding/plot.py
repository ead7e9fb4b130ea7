"""A figure of the bounds of delta over the code length, with the chosen deltas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.coding.bounds import LOWER_FORMS, UPPER_FORMS, lower_bound, upper_bound
from rmsh.core.errors import ConfigError, require
from rmsh.core.files import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rmsh.coding.bounds import DeltaChoice, Inequality, UpperForm
    from rmsh.coding.entropy import LabelStatistics
    from rmsh.core.types import IntArray, ScoreArray

FORMATS = ("pdf", "png", "svg")
SHORTEST, LONGEST = 8, 256  # code lengths on the axis, extended if a choice lies outside
BLACK, GREY, BAND = "black", "0.35", "0.85"

# The paper's form is solid black, the others are dashed grey: readable without colours.
_UPPER_STYLES = ((BLACK, "-", "upper bound, paper"), (GREY, "--", "upper bound, joint H(L), exact sum"))
_LOWER_STYLES = (
    (BLACK, "-", "lower bound, paper"),
    (GREY, "-.", "lower bound, log2|l|"),
    (GREY, ":", "lower bound, estimated H"),
)


def plot_bounds(
    statistics: LabelStatistics,
    choices: Sequence[DeltaChoice],
    path: Path,
    *,
    confidence: float = 0.9,
    inequality: Inequality = "chebyshev",
) -> None:
    """Draw the bounds for code lengths from 8 to 256 bits and the chosen deltas into a .pdf, .png or .svg file.

    ``confidence`` and ``inequality`` are those with which the deltas were chosen.
    """
    kind = figure_format(path)
    from matplotlib.figure import Figure

    chosen = [choice.bits for choice in choices]
    lengths = np.arange(min([SHORTEST, *chosen]), max([LONGEST, *chosen]) + 1)
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    lowers = [lower_bound(statistics.similarity(form), confidence, inequality=inequality) for form in LOWER_FORMS]
    _draw_bounds(axes, lengths, [_upper_curve(statistics, lengths, form) for form in UPPER_FORMS], lowers)
    _draw_choices(axes, choices)
    _draw_frame(axes, f"{statistics.items:,} items, H(L) = {statistics.entropy('independent'):.2f} bits")
    with atomic(path) as file:
        figure.savefig(file, format=kind, dpi=200)


def figure_format(path: Path) -> str:
    """The format for the name of a figure; ConfigError if it is unknown, MissingExtraError without matplotlib."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ConfigError(f"The figure {path} has the suffix {path.suffix!r}; use .pdf, .png or .svg.")
    require("matplotlib", "plots")
    return kind


def _upper_curve(statistics: LabelStatistics, lengths: IntArray, form: UpperForm) -> ScoreArray:
    """The upper bound at each length; NaN if no delta is possible."""
    entropy = statistics.entropy(form[0])
    bounds = (upper_bound(int(bits), entropy, form=form[1]) for bits in lengths)
    return np.array([np.nan if bound is None else bound for bound in bounds])


def _draw_bounds(axes: Axes, lengths: IntArray, uppers: Sequence[ScoreArray], lowers: Sequence[float]) -> None:
    feasible = uppers[0] >= lowers[0]
    axes.fill_between(lengths, lowers[0], uppers[0], where=feasible, step="mid", color=BAND, label="feasible, paper")
    for curve, (colour, style, label) in zip(uppers, _UPPER_STYLES, strict=True):
        axes.step(lengths, curve, where="mid", color=colour, linestyle=style, label=label)
    for level, (colour, style, label) in zip(lowers, _LOWER_STYLES, strict=True):
        axes.axhline(level, color=colour, linestyle=style, linewidth=1.2)
        place: dict[str, Any] = {"xytext": (0, -3), "textcoords": "offset points", "ha": "right", "va": "top"}
        axes.annotate(f"{label}: {level:.2f}", (lengths[-1], level), fontsize="small", **place)


def _draw_choices(axes: Axes, choices: Sequence[DeltaChoice]) -> None:
    """Mark each delta: filled for the paper's bounds, open for other forms, a cross if nothing is feasible."""
    kinds = [
        ("delta from the paper's bounds", "o", BLACK, [c for c in choices if c.paper.feasible]),
        ("delta from other forms", "o", "white", [c for c in choices if c.feasible and not c.paper.feasible]),
        ("delta, not feasible", "X", "white", [c for c in choices if not c.feasible]),
    ]
    for label, marker, face, members in kinds:
        if members:
            x, y = [c.bits for c in members], [c.delta for c in members]
            axes.scatter(x, y, s=45, marker=marker, facecolor=face, edgecolor=BLACK, zorder=3, label=label)
    for choice in choices:
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        point = (choice.bits, choice.delta)
        axes.annotate(str(choice.delta), point, xytext=(7, -12), textcoords="offset points", bbox=box)


def _draw_frame(axes: Axes, title: str) -> None:
    """Logarithmic axes, so that short codes get as much room as long ones."""
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log", base=2)
        axis.set_major_formatter("{x:.0f}")
    axes.set_ylim(bottom=0.65)
    axes.set_xlabel("code length K (bits)")
    axes.set_ylabel("minimum distance delta (bits)")
    axes.set_title(title, fontsize="medium")
    axes.legend(loc="upper left", fontsize="small", frameon=False)
