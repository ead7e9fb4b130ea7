"""The figure of a data card: how often each class occurs, how many labels items have, and where delta may lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.coding.plot import figure_format
from rmsh.core.files import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rmsh.datacard import DataCard

__all__ = ["plot_card"]

MOST_CLASSES = 40  # bars with a readable name
BAR, RANGE = "0.45", "0.8"


def plot_card(card: DataCard, path: Path) -> None:
    """Draw a card into a .pdf, .png or .svg file.

    Raises:
        ConfigError: the file has another suffix.
        MissingExtraError: matplotlib is not installed.
    """
    kind = figure_format(path)
    from matplotlib.figure import Figure

    shown = min(len(card.frequencies), MOST_CLASSES)
    figure = Figure(figsize=(8.4, max(4.6, 1.2 + 0.17 * shown)), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    _draw_frequencies(figure.add_subplot(grid[:, 0]), card)
    _draw_labels(figure.add_subplot(grid[0, 1]), card)
    _draw_delta(figure.add_subplot(grid[1, 1]), card)
    figure.suptitle(_title(card), fontsize="medium")
    with atomic(path) as file:
        figure.savefig(file, format=kind, dpi=200)


def _title(card: DataCard) -> str:
    chance = ", ".join(f"{name} {value:.3f}" for name, value in card.chance.items())
    return (
        f"{card.name}: {card.counts['items']:,} items, {card.classes} classes, H(L) = "
        f"{card.entropy['independent']:.2f} bits, {card.dissimilar:.1%} of all pairs dissimilar"
        + (f"\na random ranking scores {chance}" if chance else "")
    )


def _draw_frequencies(axes: Axes, card: DataCard) -> None:
    """The most frequent classes, the first at the top."""
    common = sorted(card.frequencies.items(), key=lambda pair: -pair[1])[:MOST_CLASSES]
    axes.barh([name for name, _ in common], [100 * share for _, share in common], color=BAR)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.tick_params(axis="y", labelsize="small", length=0)
    rarer = len(card.frequencies) - len(common)
    axes.set_xlabel("% of the items" + (f" (and {rarer} rarer classes)" if rarer else ""))


def _draw_labels(axes: Axes, card: DataCard) -> None:
    axes.bar(range(len(card.labels_histogram)), card.labels_histogram, color=BAR, width=0.9)
    axes.set_xlabel(f"labels an item, {card.labels_per_item:.2f} on average")
    axes.set_ylabel("items")
    axes.locator_params(axis="x", integer=True)
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _draw_delta(axes: Axes, card: DataCard) -> None:
    """For each code length the paper's range, where there is one, and the delta that is chosen."""
    for position, choice in enumerate(card.delta):
        bounds = choice.paper
        if bounds.feasible and bounds.upper is not None:
            axes.bar(position, bounds.upper - bounds.lower, bottom=bounds.lower, color=RANGE, width=0.6)
        axes.plot(position, choice.delta, "o", color="black", fillstyle="full" if bounds.feasible else "none")
        axes.annotate(
            str(choice.delta), (position, choice.delta), xytext=(0, 6), textcoords="offset points", ha="center"
        )
    axes.set_xticks(range(len(card.delta)), [f"{choice.bits} bits" for choice in card.delta])
    axes.set_xlim(-0.5, len(card.delta) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("delta (bits)")
    axes.set_title("bar: the paper's bounds; open circle: they cross", fontsize="small")
