"""Robustness: NDCG when training labels are wrong, and when what asks is disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.paper.figures import style
from lab.paper.names import DIRECTION_TITLES
from lab.paper.studies import noise_sweeps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lab.paper.outcomes import Outcome, Sweep

__all__ = ["draw_label_noise", "draw_query_noise"]


def draw_label_noise(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """NDCG over the share of training pairs with the labels of another, both directions; None without such runs."""
    sweeps = noise_sweeps(outcomes, dataset, "label_noise")
    panels = {title: (direction, sweeps) for direction, title in DIRECTION_TITLES.items()}
    return _draw(panels, "share of training pairs with wrong labels") if sweeps else None


def draw_query_noise(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """NDCG over the noise in the features of what asks: pictures I → T, texts T → I; None without such runs."""
    pictures, texts = (noise_sweeps(outcomes, dataset, name) for name in ("image_noise", "text_noise"))
    panels = {"I → T, noise in the pictures": ("i2t", pictures), "T → I, noise in the texts": ("t2i", texts)}
    return _draw(panels, "noise, in deviations of each feature") if pictures or texts else None


def _draw(panels: dict[str, tuple[str, dict[str, Sweep]]], label: str) -> Figure:
    figure = style.new_figure(11.5, 4.4)
    for axes, (title, (direction, sweeps)) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
        for method, sweep in sweeps.items():
            axes.plot(list(sweep.points), sweep.means(direction), **style.look(method).line_options())
        axes.set(title=title, xlabel=label)
        axes.set_xticks(sorted({value for sweep in sweeps.values() for value in sweep.points}))
        _draw_chance(axes, direction, sweeps)
        if not sweeps:
            axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes)
    figure.axes[0].set_ylabel("NDCG@500")
    entries = dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))
    entries |= dict(zip(*reversed(figure.axes[1].get_legend_handles_labels()), strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside right center")
    return figure


def _draw_chance(axes: Axes, direction: str, sweeps: dict[str, Sweep]) -> None:
    for sweep in list(sweeps.values())[:1]:
        level = next(iter(sweep.points.values()))[0].chance(direction)
        axes.axhline(level, **style.RANDOM)
