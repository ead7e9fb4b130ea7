"""The weights of the loss: how NDCG follows lambda1 to lambda4, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmsh.reporting.figures import style
from rmsh.reporting.outcomes import DIRECTIONS, Outcome, Sweep
from rmsh.reporting.studies import WEIGHTS, usual_value, weight_sweeps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_weights"]


def draw_weights(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """A panel a weight, both directions; the value of all other runs is marked; None without sweeps."""
    sweeps = weight_sweeps(outcomes, dataset)
    if not sweeps:
        return None
    figure = style.new_figure(9.6, 6.6)
    panels = figure.subplots(2, 2, sharey=True).flat
    for axes, (name, title) in zip(panels, WEIGHTS.items(), strict=True):
        if name in sweeps:
            _draw_sweep(axes, sweeps[name], usual_value(outcomes, dataset, name))
            axes.set_title(title)
            if len(sweeps) < len(WEIGHTS):  # the panel to the left, whose labels would serve, may be missing
                axes.tick_params(labelleft=True)
        else:
            axes.set_axis_off()
            axes.text(0.5, 0.5, f"{title}: not run", ha="center", transform=axes.transAxes)
    first = next(iter(sweeps))
    shown = figure.axes[list(WEIGHTS).index(first)]
    figure.legend(*shown.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figure.supylabel("NDCG@500", fontsize=11)
    return figure


def _draw_sweep(axes: Axes, sweep: Sweep, usual: float) -> None:
    """Values at equal steps, so that 0 has a place; a dotted line at the value that all other runs have."""
    values = list(sweep.points)
    for direction in DIRECTIONS:
        axes.plot(range(len(values)), sweep.means(direction), **style.DIRECTION_LINES[direction])
    if usual in values:
        axes.axvline(values.index(usual), color="0.4", linewidth=1.4, linestyle=":", label="value of all other runs")
    axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
