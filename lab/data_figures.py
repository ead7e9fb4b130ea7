"""Figures of a data set: the bounds of delta over the code length with the chosen deltas, and its data card.

The numbers are those of `rmsh bounds` and `make lab ARGS="card DATA"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from lab.datacard import DataCard, make_card
from lab.paper.figure_style import new_figure
from rmsh.coding.bounds import LOWER_FORMS, UPPER_FORMS, choose_delta, lower_bound, upper_bound
from rmsh.coding.entropy import LabelStatistics
from rmsh.core.errors import ConfigError, DataError
from rmsh.core.files import atomic
from rmsh.data.open import open_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rmsh.coding.bounds import DeltaChoice, UpperForm
    from rmsh.core.types import IntArray, ScoreArray

FORMATS = ("pdf", "png", "svg")
LENGTHS = (16, 32, 64, 128)  # code lengths whose delta is marked
MOST_CLASSES = 40  # bars with a readable name
SHORTEST, LONGEST = 8, 256  # code lengths on the axis, extended if a choice lies outside
BLACK, GREY, BAND = "black", "0.35", "0.85"

# The paper's form is solid black, the others are dashed grey: readable without colours.
_UPPER_STYLES = ((BLACK, "-", "upper bound, paper"), (GREY, "--", "upper bound, joint H(L), exact sum"))
_LOWER_STYLES = (
    (BLACK, "-", "lower bound, paper"),
    (GREY, "-.", "lower bound, log2|l|"),
    (GREY, ":", "lower bound, estimated H"),
)


def main(
    what: Annotated[Literal["bounds", "card"], typer.Argument(help="What to draw.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Data with labels, as for `rmsh train`.")],
    *,
    out: Annotated[Path, typer.Option(help="File to write: .pdf, .png or .svg.")],
) -> None:
    """Draw a figure of a data set."""
    opened = open_pairs(data, skip=("images", "texts") if what == "bounds" else ())
    if what == "card":
        plot_card(make_card(opened), out)
        return
    labels = opened.pairs.labels
    if labels is None:
        raise DataError(f"{opened.name} has no labels, and the bounds need them; give data with labels.")
    statistics = LabelStatistics.of(labels if opened.split is None else labels[opened.split.train])
    plot_bounds(statistics, [choose_delta(statistics, bits) for bits in LENGTHS], out)


def plot_bounds(statistics: LabelStatistics, choices: Sequence[DeltaChoice], path: Path) -> None:
    """Draw the bounds for code lengths from 8 to 256 bits and the chosen deltas into a .pdf, .png or .svg file."""
    figure = _new_figure(path, 6.4, 4.4)
    axes = figure.add_subplot()
    chosen = [choice.bits for choice in choices]
    lengths = np.arange(min([SHORTEST, *chosen]), max([LONGEST, *chosen]) + 1)
    lowers = [lower_bound(statistics.similarity(form)) for form in LOWER_FORMS]
    _draw_bounds(axes, lengths, [_upper_curve(statistics, lengths, form) for form in UPPER_FORMS], lowers)
    _draw_choices(axes, choices)
    _draw_frame(axes, f"{statistics.items:,} items, H(L) = {statistics.entropy('independent'):.2f} bits")
    _save(figure, path)


def _new_figure(path: Path, width: float, height: float) -> Figure:
    """An empty figure; ConfigError if it cannot be written under this name."""
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise ConfigError(f"The figure {path} has the suffix {path.suffix!r}; use .pdf, .png or .svg.")
    return new_figure(width, height)


def _save(figure: Figure, path: Path) -> None:
    with atomic(path) as file:
        figure.savefig(file, format=path.suffix.lower().removeprefix("."), dpi=200)


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


def plot_card(card: DataCard, path: Path) -> None:
    """Draw the class frequencies and the labels per item of a card into a .pdf, .png or .svg file."""
    common = sorted(card.frequencies.items(), key=lambda pair: -pair[1])[:MOST_CLASSES]
    rarer = len(card.frequencies) - len(common)
    figure = _new_figure(path, 8.4, max(4.6, 1.2 + 0.17 * len(common)))
    classes, labels = figure.subplots(1, 2)
    classes.barh([name for name, _ in common], [100 * share for _, share in common], color="0.45")
    classes.invert_yaxis()  # the most frequent class on top
    classes.margins(y=0.01)
    classes.tick_params(axis="y", labelsize="small", length=0)
    classes.set_xlabel("% of the items" + (f" (and {rarer} rarer classes)" if rarer else ""))
    labels.bar(range(len(card.labels_histogram)), card.labels_histogram, color="0.45", width=0.9)
    labels.set_xlabel(f"labels per item, {card.labels_per_item:.2f} on average")
    labels.set_ylabel("items")
    labels.locator_params(axis="x", integer=True)
    labels.yaxis.set_major_formatter("{x:,.0f}")
    title = (
        f"{card.name}: {card.counts['items']:,} items, {card.classes} classes, H(L) = "
        f"{card.entropy['independent']:.2f} bits, {card.dissimilar:.1%} of all pairs dissimilar"
    )
    if card.chance:
        title += "\na random ranking scores " + ", ".join(f"{name} {value:.3f}" for name, value in card.chance.items())
    figure.suptitle(title, fontsize="medium")
    _save(figure, path)
