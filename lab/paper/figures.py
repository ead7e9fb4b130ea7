"""The figures of an experiment that are drawn from scores: methods, sweeps and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from lab.paper import figure_style as style
from lab.paper.claims import WEIGHT_TITLES, DeltaBounds, delta_bounds, weight_sweeps
from lab.paper.published import COMPARED, DIRECTION_TITLES
from lab.paper.results import (
    DELTA,
    DIRECTIONS,
    IMAGE_NOISE,
    LABEL_NOISE,
    MAP,
    PRINTED,
    TEXT_NOISE,
    Comparison,
    Experiment,
    Method,
    RunResult,
    Sweep,
    deviation,
    done,
    first_seed,
    mean_score,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rmsh.core.types import ScoreArray

Fill: TypeAlias = Literal["full", "left", "none"]
_FILLS: tuple[Fill, ...] = ("full", "left", "none")  # of a method's points, one per preset
_SHARED: dict[str, tuple[str, dict[str, Any]]] = {
    "0": ("no label", {"color": style.VERMILION, "linestyle": "-", "linewidth": 2.0}),
    "1": ("one", {"color": style.SKY, "linestyle": "--"}),
    "2": ("two", {"color": style.BLUE, "linestyle": "-."}),
    "3+": ("three or more", {"color": style.BLACK, "linestyle": ":", "linewidth": 2.0}),
}
# The paper's eight deltas as fractions of the code length.
_FRACTIONS = {
    "K/40": 1 / 40,
    "K/20": 1 / 20,
    "K/8": 1 / 8,
    "3K/20": 3 / 20,
    "K/4": 1 / 4,
    "K/3": 1 / 3,
    "K/2": 1 / 2,
    "2K/3": 2 / 3,
}


def _two_panels() -> tuple[Figure, Any]:
    figure = style.new_figure(11.5, 4.6)
    return figure, figure.subplots(1, 2, sharey=True)


def draw_precision_recall(experiment: Experiment) -> Figure | None:
    """Precision over recall of the eight methods at one code length; None without curves."""
    comparison = experiment.comparison
    bits = comparison.usual_bits if comparison.bits else 0
    groups = {name: done(comparison.cell(Method(name), bits)) for name in COMPARED}
    groups = {name: group for name, group in groups.items() if group and "curves" in group[0].result}
    if not groups:
        return None
    figure, panels = _two_panels()
    for axes, (direction, title) in zip(panels, DIRECTION_TITLES.items(), strict=True):
        for name, group in groups.items():
            recall, precision = _mean_curve(group, direction)
            every = max(1, len(recall) // 8)
            axes.plot(recall, precision, markevery=every, **style.look(name).line_options())
        axes.axhline(next(iter(groups.values()))[0].chance(direction, MAP), **style.RANDOM)
        axes.set(title=f"{title}, {bits} bits", xlabel="recall", xlim=(0, 1))
    panels[0].set(ylabel="precision", ylim=(0, 1))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def _mean_curve(results: Sequence[RunResult], direction: str) -> tuple[ScoreArray, ScoreArray]:
    """Recall and precision at each rank, means over seeds, (points,) each."""
    curves = [result.result["curves"][direction] for result in results]
    return np.mean([c["recall"] for c in curves], axis=0), np.mean([c["precision"] for c in curves], axis=0)


def draw_bytes(experiment: Experiment) -> Figure | None:
    """NDCG over the bytes of a code, for every method with several lengths; None if there is none."""
    comparison = experiment.comparison
    shown = [method for method in comparison.methods if not method.preset and not method.database]
    lines = {method: _lengths(comparison, method) for method in shown}
    lines = {method: groups for method, groups in lines.items() if len(groups) > 1}
    if not lines:
        return None
    figure = style.new_figure(12.5, 6.5)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (direction, title) in zip(panels, DIRECTION_TITLES.items(), strict=True):
        for method, groups in lines.items():
            scores = [mean_score(group, direction) for group in groups.values()]
            axes.plot([bits / 8 for bits in groups], scores, **style.look(method.name).line_options())
        _draw_references(axes, comparison, direction)
        _log2_axis(axes, {bits / 8: f"{bits / 8:g}" for groups in lines.values() for bits in groups})
        chance = done(comparison)[0].chance(direction)
        axes.set(title=f"{title}; a random ranking scores {chance:.4f}", xlabel="bytes per item")
    panels[0].set_ylabel("NDCG@500")
    for axes in panels:
        style.label_ends(axes)
    return figure


def _lengths(comparison: Comparison, method: Method) -> dict[int, list[RunResult]]:
    runs = comparison.runs.get(method, {})
    return {bits: group for bits, results in runs.items() if bits and (group := done(results))}


def _draw_references(axes: Axes, comparison: Comparison, direction: str) -> None:
    """Rankings by real numbers, hundreds of bytes per item, as horizontal lines."""
    for method, lengths in comparison.runs.items():
        if group := done(lengths.get(0, [])):
            look = style.look(method.name)
            level = mean_score(group, direction)
            axes.axhline(level, color=look.colour, linestyle=look.line, linewidth=1.1, label=look.title)


def _log2_axis(axes: Axes, ticks: dict[float, str], **options: Any) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(ticks), [ticks[value] for value in sorted(ticks)], **options)
    axes.minorticks_off()


def draw_time(experiment: Experiment) -> Figure | None:
    """NDCG over the CPU seconds of training, one point per method at one code length; None without times."""
    comparison = experiment.comparison
    bits = comparison.usual_bits if comparison.bits else 0
    shown = [method for method in comparison.methods if method.preset in ("", PRINTED) and not method.database]
    timed = {method: _timed(comparison, method, bits) for method in shown}
    points = {method: group for method, group in timed.items() if group}
    if not points:
        return None
    figure = style.new_figure(12.5, 7.0)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (direction, title) in zip(panels, DIRECTION_TITLES.items(), strict=True):
        for method, group in points.items():
            presets = sorted(other for other in points if other.name == method.name)
            _draw_point(axes, method, group, direction, fill=_FILLS[presets.index(method) % len(_FILLS)])
        axes.set(title=f"{title}, {bits} bits", xlabel="training, CPU seconds")
        _log10_axis(axes)
    panels[0].set_ylabel("NDCG@500")
    figure.draw_without_rendering()
    for axes in panels:
        style.label_points(axes)
    return figure


def _timed(comparison: Comparison, method: Method, bits: int) -> list[RunResult]:
    """The runs at a code length with their training time; none of a reference method."""
    if comparison.is_reference(method):
        return []
    return [result for result in done(comparison.cell(method, bits)) if "fit_cpu" in result.result.get("seconds", {})]


def _draw_point(axes: Axes, method: Method, group: Sequence[RunResult], direction: str, *, fill: Fill) -> None:
    look = style.look(method.name)
    seconds = np.mean([result.result["seconds"]["fit_cpu"] for result in first_seed(group)])
    options: dict[str, Any] = {"color": look.colour, "markeredgecolor": "black", "markersize": 9, "label": method.title}
    axes.plot(seconds, mean_score(group, direction), look.marker, fillstyle=fill, **options)


def _log10_axis(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.15, y=0.1)


def draw_delta(experiment: Experiment) -> Figure | None:
    """NDCG over delta in both directions, with the bounds; None without a sweep."""
    sweep = experiment.sweep(DELTA, "delta")
    if sweep is None:
        return None
    figure, bits = style.new_figure(10.2, 4.8), sweep.first.run.bits
    axes = figure.subplots()
    for direction in DIRECTIONS:
        errors = [deviation(group, direction) or 0.0 for group in sweep.points.values()]
        axes.errorbar(list(sweep.points), sweep.means(direction), errors, capsize=3, **style.DIRECTION_LINES[direction])
    _draw_bounds(axes, delta_bounds(experiment.of(DELTA)))
    labels = {delta: f"{fraction(delta, bits)}\n{delta:.3g}".strip() for delta in _given_deltas(sweep)}
    _log2_axis(axes, labels, fontsize=9)
    axes.set(xlabel="robust parameter δ, bits", ylabel="NDCG@500")
    chance = sweep.first.chance(DIRECTIONS[0])
    axes.set_title(f"{experiment.dataset}, K = {bits} bits; a random ranking scores {chance:.4f}", pad=24)
    figure.legend(loc="outside right center")
    return figure


def _given_deltas(sweep: Sweep) -> dict[float, list[RunResult]]:
    """The swept deltas, without one that was only computed from the bounds."""
    return {delta: group for delta, group in sweep.points.items() if any("=" in result.run.tag for result in group)}


def fraction(delta: float, bits: int) -> str:
    """A delta as the paper writes it, if it is one of its eight.

    Example:
        >>> fraction(42.667, 128), fraction(24, 128)
        ('K/3', '')
    """
    near = (name for name, share in _FRACTIONS.items() if abs(share * bits - delta) < 0.01 * delta)
    return next(near, "")


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


def draw_distances(experiment: Experiment, *, direction: str = "i2t") -> Figure | None:
    """One panel per delta: the distances of pairs that share no label, one, two, and more; None without a sweep."""
    sweep = experiment.sweep(DELTA, "delta")
    if sweep is None:
        return None
    points = _given_deltas(sweep)
    figure, panels = _panel_grid(len(points), columns=4, width=3.2, height=2.7, sharex=True)
    for axes, (delta, group) in zip(panels, points.items(), strict=True):
        _draw_distribution(axes, group[0], direction)
        axes.axvline(delta, color="0.3", linewidth=1, linestyle=(0, (4, 2)))
        title = " = ".join(filter(None, ["δ", fraction(delta, sweep.first.run.bits), f"{delta:.3g}"]))
        axes.set_title(title, fontsize=11)
    figure.axes[0].set_ylim(bottom=0)  # last, because it ends automatic scaling
    figure.supxlabel(f"Hamming distance, {DIRECTION_TITLES[direction]}", fontsize=11)
    figure.supylabel("share of the pairs", fontsize=11)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, title="labels in common")
    return figure


def _panel_grid(count: int, *, columns: int, width: float, height: float, sharex: bool) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of the same vertical scale."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = style.new_figure(width * columns + 0.2, height * rows + 0.7)
    panels = list(figure.subplots(rows, columns, sharex=sharex, sharey=True, squeeze=False).flat)
    for unused in panels[count:]:
        unused.set_axis_off()
    return figure, panels[:count]


def _draw_distribution(axes: Axes, result: RunResult, direction: str) -> None:
    for shared, (label, options) in _SHARED.items():
        counts = np.asarray(result.result["distances"][direction].get(shared, []), dtype=np.float64)
        if counts.sum():
            axes.plot(counts / counts.sum(), label=label, **options)


def draw_weights(experiment: Experiment) -> Figure | None:
    """One panel per weight of the loss; the value used in Table 1 is marked; None without sweeps."""
    sweeps = weight_sweeps(experiment)
    if not sweeps:
        return None
    rmsh = done(group for lengths in experiment.comparison.runs.get(experiment.rmsh, {}).values() for group in lengths)
    figure, panels = _panel_grid(len(sweeps), columns=2, width=4.7, height=2.9, sharex=False)
    for axes, (name, sweep) in zip(panels, sweeps.items(), strict=True):
        values = list(sweep.points)
        for direction in DIRECTIONS:  # at equal steps, so that 0 has a place
            axes.plot(range(len(values)), sweep.means(direction), **style.DIRECTION_LINES[direction])
        if rmsh and rmsh[0].option(name) in values:
            usual = values.index(rmsh[0].option(name))
            axes.axvline(usual, color="0.4", linewidth=1.4, linestyle=":", label="value in Table 1")
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes.set_title(WEIGHT_TITLES[name])
    _shared_legend(figure, loc="outside upper center", ncols=3)
    figure.supylabel("NDCG@500", fontsize=11)
    figure.supxlabel(_weights_caption(sweeps), fontsize=10)
    return figure


def _shared_legend(figure: Figure, **options: Any) -> None:
    """A legend with every label of every panel once."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(found.values(), found.keys(), **options)


def _weights_caption(sweeps: dict[str, Sweep]) -> str:
    first = next(iter(sweeps.values())).first
    missing = ", ".join(title.split(",")[0] for name, title in WEIGHT_TITLES.items() if name not in sweeps)
    caption = f"{first.run.bits} bits; a random ranking scores {first.chance(DIRECTIONS[0]):.4f}"
    return f"{caption}; not run: {missing}" if missing else caption


def draw_label_noise(experiment: Experiment) -> Figure | None:
    """NDCG over the share of training pairs with wrong labels; None without such runs."""
    sweeps = experiment.noise_sweeps(LABEL_NOISE)
    panels = {title: (direction, sweeps) for direction, title in DIRECTION_TITLES.items()}
    return _draw_noise(panels, "share of training pairs with wrong labels") if sweeps else None


def draw_query_noise(experiment: Experiment) -> Figure | None:
    """NDCG over the noise in the features of the queries; None without such runs."""
    images, texts = experiment.noise_sweeps(IMAGE_NOISE), experiment.noise_sweeps(TEXT_NOISE)
    panels = {"I → T, noise in the images": ("i2t", images), "T → I, noise in the texts": ("t2i", texts)}
    return _draw_noise(panels, "noise, in standard deviations of each feature") if images or texts else None


def _draw_noise(panels: dict[str, tuple[str, dict[str, Sweep]]], label: str) -> Figure:
    figure, both = _two_panels()
    for axes, (title, (direction, sweeps)) in zip(both, panels.items(), strict=True):
        for name, sweep in sweeps.items():
            axes.plot(list(sweep.points), sweep.means(direction), **style.look(name).line_options())
        axes.set(title=title, xlabel=label)
        axes.set_xticks(sorted({value for sweep in sweeps.values() for value in sweep.points}))
        if sweeps:
            axes.axhline(next(iter(sweeps.values())).first.chance(direction), **style.RANDOM)
        else:
            axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes)
    figure.axes[0].set_ylabel("NDCG@500")
    _shared_legend(figure, loc="outside right center")
    return figure
