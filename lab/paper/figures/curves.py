"""Precision over recall: all methods at one code length, both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lab.paper.figures import style
from lab.paper.lineup import Entry, Lineup, line_up
from lab.paper.names import COMPARED, DIRECTION_TITLES
from lab.paper.outcomes import MAP, Outcome, done

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rmsh.core.types import ScoreArray

__all__ = ["draw_precision_recall", "mean_curve"]


def draw_precision_recall(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """The curves of the eight methods at 64 bits, or at the length with the most runs; None without curves."""
    lineup = line_up(outcomes, dataset)
    groups = _with_curves(lineup, lineup.usual_bits) if lineup.bits else {}
    if not groups:
        return None
    figure = style.new_figure(11.5, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (direction, title) in zip(panels, DIRECTION_TITLES.items(), strict=True):
        _draw_curves(axes, groups, direction)
        axes.set(title=f"{title}, {lineup.usual_bits} bits", xlabel="recall", xlim=(0, 1))
    panels[0].set(ylabel="precision", ylim=(0, 1))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def _with_curves(lineup: Lineup, bits: int) -> dict[Entry, list[Outcome]]:
    groups = {Entry(name): done(lineup.cell(Entry(name), bits)) for name in COMPARED}
    return {entry: group for entry, group in groups.items() if group and "curves" in group[0].result}


def _draw_curves(axes: Axes, groups: dict[Entry, list[Outcome]], direction: str) -> None:
    for entry, group in groups.items():
        recall, precision = mean_curve(group, direction)
        every = max(1, len(recall) // 8)
        axes.plot(recall, precision, markevery=every, **style.look(entry.method).line_options())
    level = next(iter(groups.values()))[0].chance(direction, MAP)
    axes.axhline(level, **style.RANDOM)


def mean_curve(outcomes: Sequence[Outcome], direction: str) -> tuple[ScoreArray, ScoreArray]:
    """Recall and precision at each rank, means over seeds, (points,) each."""
    curves = [outcome.result["curves"][direction] for outcome in outcomes]
    return np.mean([c["recall"] for c in curves], axis=0), np.mean([c["precision"] for c in curves], axis=0)
