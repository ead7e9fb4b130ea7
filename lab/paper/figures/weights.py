"""The weights of the loss: how NDCG follows lambda1 to lambda4, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab.paper.figures import style
from lab.paper.outcomes import DIRECTIONS, Outcome, Sweep
from lab.paper.studies import WEIGHTS, usual_value, weight_sweeps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_weights"]


def draw_weights(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """A panel a weight, both directions; the value of all other runs is marked; None without sweeps."""
    sweeps = weight_sweeps(outcomes, dataset)
    if not sweeps:
        return None
    columns = min(2, len(sweeps))
    rows = -(-len(sweeps) // columns)
    figure = style.new_figure(4.8 * columns, 2.9 * rows + 0.9)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).flat
    for axes, (name, sweep) in zip(panels, sweeps.items(), strict=False):
        _draw_sweep(axes, sweep, usual_value(outcomes, dataset, name))
        axes.set_title(WEIGHTS[name])
    for axes in list(figure.axes)[len(sweeps) :]:
        axes.set_axis_off()
    figure.legend(*_entries(figure), loc="outside upper center", ncols=3)
    figure.supylabel("NDCG@500", fontsize=11)
    figure.supxlabel(_below(sweeps), fontsize=10)
    return figure


def _entries(figure: Figure) -> tuple[list[Any], list[str]]:
    """What the panels show, each once: not every panel has the usual value."""
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    return list(found.values()), list(found)


def _below(sweeps: dict[str, Sweep]) -> str:
    """What a random ranking scores, and which weights are not there."""
    sweep = next(iter(sweeps.values()))
    chance = next(iter(sweep.points.values()))[0].chance(DIRECTIONS[0])
    missing = ", ".join(title.split(",")[0] for name, title in WEIGHTS.items() if name not in sweeps)
    words = f"{sweep.run.bits} bits; a random ranking scores {chance:.4f}"
    return f"{words}; not run: {missing}" if missing else words


def _draw_sweep(axes: Axes, sweep: Sweep, usual: float) -> None:
    """Values at equal steps, so that 0 has a place; a dotted line at the value that all other runs have."""
    values = list(sweep.points)
    for direction in DIRECTIONS:
        axes.plot(range(len(values)), sweep.means(direction), **style.DIRECTION_LINES[direction])
    if usual in values:
        axes.axvline(values.index(usual), color="0.4", linewidth=1.4, linestyle=":", label="value of all other runs")
    axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
