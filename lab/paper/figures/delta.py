"""The robust parameter delta: how much it matters, where its bounds are, and how far apart items then lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.paper.figures import style
from lab.paper.names import DIRECTION_TITLES
from lab.paper.outcomes import DIRECTIONS, Outcome, Sweep, seeds_apart
from lab.paper.studies import DeltaBounds, bounds_of, delta_sweep, fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_delta", "draw_distances"]

_SHARED: dict[str, tuple[str, dict[str, Any]]] = {
    "0": ("no label", {"color": style.VERMILION, "linestyle": "-", "linewidth": 2.0}),
    "1": ("one", {"color": style.SKY, "linestyle": "--"}),
    "2": ("two", {"color": style.BLUE, "linestyle": "-."}),
    "3+": ("three or more", {"color": style.BLACK, "linestyle": ":", "linewidth": 2.0}),
}


def draw_delta(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """NDCG over delta, both directions, with the bounds; None without a sweep."""
    sweep = delta_sweep(outcomes, dataset)
    if sweep is None:
        return None
    figure = style.new_figure(8.4, 4.8)
    axes = figure.subplots()
    deltas = list(sweep.points)
    for direction in DIRECTIONS:
        errors = [seeds_apart(group, direction) or 0.0 for group in sweep.points.values()]
        axes.errorbar(deltas, sweep.means(direction), errors, capsize=3, **style.DIRECTION_LINES[direction])
    _draw_bounds(axes, bounds_of(outcomes, sweep))
    _label_deltas(axes, list(_given(sweep)), sweep.run.bits)
    axes.set(xlabel="robust parameter δ, bits", ylabel="NDCG@500")
    chance = next(iter(sweep.points.values()))[0].chance(DIRECTIONS[0])
    axes.set_title(f"{dataset}, K = {sweep.run.bits} bits; a random ranking scores {chance:.4f}", pad=24)
    axes.legend(loc="best")
    return figure


def _given(sweep: Sweep) -> dict[float, list[Outcome]]:
    """The deltas that runs were told, without one that only follows from the bounds."""
    return {delta: runs for delta, runs in sweep.points.items() if any("delta" in o.run.options for o in runs)}


def _draw_bounds(axes: Axes, bounds: DeltaBounds | None) -> None:
    if bounds is None:
        return
    if bounds.upper is not None and bounds.upper >= bounds.lower:
        axes.axvspan(bounds.lower, bounds.upper, color="0.92", zorder=0, label="between the bounds")
    for value, name in ((bounds.lower, "lower"), (bounds.upper, "upper")):
        if value is not None:
            axes.axvline(value, color="0.3", linewidth=1.2, linestyle=(0, (4, 2)))
            axes.annotate(
                f"{name} bound {value:.3g}",
                (value, 1.0),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                fontsize=10,
            )


def _label_deltas(axes: Axes, deltas: Sequence[float], bits: int) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(deltas, [f"{fraction(delta, bits)}\n{delta:.3g}".strip() for delta in deltas], fontsize=9)
    axes.minorticks_off()


def draw_distances(outcomes: Sequence[Outcome], dataset: str, *, direction: str = "i2t") -> Figure | None:
    """For each delta, how far apart pairs lie that share no label, one, two, and more; None without a sweep."""
    sweep = delta_sweep(outcomes, dataset)
    if sweep is None:
        return None
    points = _given(sweep)
    columns = min(4, len(points))
    rows = -(-len(points) // columns)
    figure = style.new_figure(3.2 * columns + 0.2, 2.7 * rows + 0.5)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for axes, (delta, group) in zip(panels, points.items(), strict=False):
        _draw_distribution(axes, group[0], direction)
        axes.axvline(delta, color="0.3", linewidth=1, linestyle=(0, (4, 2)))
        axes.set_title(" = ".join(filter(None, ["δ", fraction(delta, sweep.run.bits), f"{delta:.3g}"])), fontsize=11)
    figure.axes[0].set_ylim(bottom=0)  # when all are drawn, for it ends the search for a scale that fits them
    for axes in list(figure.axes)[len(points) :]:
        axes.set_axis_off()
    figure.supxlabel(f"Hamming distance, {DIRECTION_TITLES[direction]}", fontsize=11)
    figure.supylabel("share of the pairs", fontsize=11)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, title="pairs that share")
    return figure


def _draw_distribution(axes: Axes, outcome: Outcome, direction: str) -> None:
    for shared, (label, options) in _SHARED.items():
        counts = np.asarray(outcome.result["distances"][direction].get(shared, []), dtype=np.float64)
        if counts.sum():
            axes.plot(counts / counts.sum(), label=label, **options)
