"""What quality costs: NDCG against the bytes of an item, and against the time of learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lab.paper.figures import style
from lab.paper.lineup import Entry, Lineup, line_up
from lab.paper.names import COMPARED, DIRECTION_TITLES
from lab.paper.outcomes import Outcome, done, mean_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bytes", "draw_time"]

Fill: TypeAlias = Literal["full", "left", "none"]
_FILLS: tuple[Fill, ...] = ("full", "left", "none")  # of a method's points, one a preset


def draw_bytes(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """NDCG over the bytes of a code, for every method with several lengths; None where there is none."""
    lineup = line_up(outcomes, dataset)
    lines = {entry: _lengths(lineup, entry) for entry in lineup.runs if not entry.preset}
    lines = {entry: groups for entry, groups in lines.items() if len(groups) > 1}
    if not lines:
        return None
    figure = style.new_figure(11.5, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (direction, title) in zip(panels, DIRECTION_TITLES.items(), strict=True):
        for entry in sorted(lines, key=_paper_order):
            sizes = [bits / 8 for bits in lines[entry]]
            scores = [mean_score(group, direction) for group in lines[entry].values()]
            axes.plot(sizes, scores, **style.look(entry.method).line_options())
        _draw_without_codes(axes, lineup, direction)
        _draw_chance(axes, lines, direction)
        _double(axes, sorted({bits / 8 for groups in lines.values() for bits in groups}))
        axes.set(title=title, xlabel="bytes an item")
    panels[0].set_ylabel("NDCG@500")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def _paper_order(entry: Entry) -> tuple[int, str]:
    known = COMPARED.index(entry.method) if entry.method in COMPARED else len(COMPARED)
    return known, entry.title


def _lengths(lineup: Lineup, entry: Entry) -> dict[int, list[Outcome]]:
    return {bits: group for bits, runs in lineup.runs[entry].items() if bits and (group := done(runs))}


def _draw_without_codes(axes: Axes, lineup: Lineup, direction: str) -> None:
    """Rankings by real numbers, hundreds of bytes an item, as lines across."""
    for entry, lengths in lineup.runs.items():
        group = done(lengths.get(0, []))
        if group:
            look = style.look(entry.method)
            level = mean_score(group, direction)
            axes.axhline(level, color=look.colour, linestyle=look.line, linewidth=1.1, label=look.title)


def _draw_chance(axes: Axes, lines: dict[Entry, dict[int, list[Outcome]]], direction: str) -> None:
    level = next(iter(next(iter(lines.values())).values()))[0].chance(direction)
    axes.axhline(level, **style.RANDOM)


def _double(axes: Axes, sizes: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()


def draw_time(outcomes: Sequence[Outcome], dataset: str) -> Figure | None:
    """NDCG over the processor seconds of learning, a point a method, at 64 bits; None without times."""
    lineup = line_up(outcomes, dataset)
    if not lineup.bits:
        return None
    bits = lineup.usual_bits
    points = {
        entry: group for entry in lineup.runs if bits in lineup.runs[entry] and (group := _timed(lineup, entry, bits))
    }
    if not points:
        return None
    figure = style.new_figure(11.5, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (direction, title) in zip(panels, DIRECTION_TITLES.items(), strict=True):
        for entry in sorted(points, key=_paper_order):
            earlier = [other for other in points if other.method == entry.method and other.preset < entry.preset]
            _draw_point(axes, entry, points[entry], direction, fill=_FILLS[len(earlier) % len(_FILLS)])
        axes.set(title=f"{title}, {bits} bits", xlabel="learning, processor seconds")
        _plain_logarithm(axes)
    panels[0].set_ylabel("NDCG@500")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def _plain_logarithm(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.1, y=0.1)


def _timed(lineup: Lineup, entry: Entry, bits: int) -> list[Outcome]:
    return [outcome for outcome in done(lineup.cell(entry, bits)) if "fit_cpu" in outcome.result.get("seconds", {})]


def _draw_point(axes: Axes, entry: Entry, group: Sequence[Outcome], direction: str, *, fill: Fill) -> None:
    look = style.look(entry.method)
    seconds = sum(outcome.result["seconds"]["fit_cpu"] for outcome in group) / len(group)
    options: dict[str, Any] = {"color": look.colour, "markeredgecolor": "black", "markersize": 9, "label": entry.title}
    axes.plot(seconds, mean_score(group, direction), look.marker, fillstyle=fill, **options)
