"""Figures of made-up results, inspected through matplotlib's objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.paper import figure_style as style
from lab.paper.figures import (
    draw_bytes,
    draw_delta,
    draw_distances,
    draw_label_noise,
    draw_precision_recall,
    draw_query_noise,
    draw_time,
    draw_weights,
)
from lab.paper.published import COMPARED
from lab.paper.results import Experiment, RunResult

ALL = [
    draw_precision_recall,
    draw_delta,
    draw_distances,
    draw_weights,
    draw_bytes,
    draw_time,
    draw_label_noise,
    draw_query_noise,
]


def _line(axes: Any, label: str) -> Any:
    return next(line for line in axes.lines if line.get_label() == label)


@pytest.mark.parametrize("draw", ALL, ids=lambda draw: draw.__name__)
def test_without_its_runs_there_is_no_figure(draw: Any, make_result: Callable[..., RunResult]) -> None:
    assert draw(Experiment("coco66k", {"table 1": [make_result(method="mlp", bits=0)]})) is None


def test_precision_recall_has_a_line_per_method_in_both_directions(everything: Experiment) -> None:
    panels = draw_precision_recall(everything).axes
    assert [axes.get_title() for axes in panels] == ["I → T, 64 bits", "T → I, 64 bits"]
    for axes in panels:
        assert [line.get_label() for line in axes.lines] == [style.look(m).title for m in COMPARED] + ["random"]
    line = _line(panels[0], "SVHN")
    assert line.get_xdata().tolist() == pytest.approx([0.01, 0.1, 1.0])
    assert line.get_ydata().tolist() == pytest.approx([0.501, 0.4, 0.2])  # the mean of three seeds


def test_lines_differ_without_colours() -> None:
    looks = [style.look(method) for method in COMPARED]
    assert len({(str(look.line), look.marker) for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)
    assert len({mark.shape for mark in style.GRADES}) == 3


def test_delta_marks_the_bounds_and_the_papers_fractions(everything: Experiment) -> None:
    (axes,) = draw_delta(everything).axes
    upright = [line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]]
    assert upright == [8.5, 39]
    assert [text.get_text().split("\n")[0] for text in axes.get_xticklabels()] == (
        ["K/40", "K/20", "K/8", "3K/20", "K/4", "K/3", "K/2", "2K/3"]
    )
    curve = axes.containers[0].lines[0]
    assert curve.get_xdata().tolist() == [3.2, 6.4, 16, 19.2, 24, 32, 42.667, 64, 85.333]
    assert curve.get_ydata()[3] == pytest.approx(0.6105)  # the mean of two seeds


def test_delta_without_an_upper_bound_marks_only_the_lower(
    make_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    runs = [make_sweep_run("delta", d) for d in (2.0, 4.0, 8.0)]
    whole = make_result()
    whole.result["facts"]["delta"]["paper"]["upper"] = None
    (axes,) = draw_delta(Experiment("coco66k", {"delta": [*runs, whole]})).axes
    assert [text.get_text() for text in axes.texts] == ["lower bound 8.5"]


def test_distances_are_shares_given_similarity_for_all_eight_deltas(everything: Experiment) -> None:
    panels = draw_distances(everything).axes
    assert len(panels) == 8
    assert panels[0].get_title() == "δ = K/40 = 3.2"
    lines = [line for line in panels[0].lines if len(line.get_xdata()) == 129]
    assert [line.get_label() for line in lines] == ["no label", "one", "two", "three or more"]
    for line in lines:
        assert np.sum(line.get_ydata()) == pytest.approx(1)
    peaks = [int(np.argmax(line.get_ydata())) for line in lines]
    assert peaks == [64, 42, 32, 21]


def test_a_delta_that_is_both_given_and_that_of_the_bounds_has_its_panel(
    make_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    runs = [make_result(), *(make_sweep_run("delta", d) for d in (8.0, 16.0, 24.0))]
    titles = [axes.get_title() for axes in draw_distances(Experiment("coco66k", {"delta": runs})).axes]
    assert titles == ["δ = K/8 = 8", "δ = K/4 = 16", "δ = 24"]


def test_weights_have_a_panel_each_and_mark_the_value_of_table_1(everything: Experiment) -> None:
    panels = draw_weights(everything).axes
    assert len(panels) == 4
    line = _line(panels[0], "I → T")
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["0.01", "0.1", "0.3", "1", "10"]
    assert list(line.get_ydata()) == pytest.approx([0.5505, 0.5805, 0.6, 0.5705, 0.5005])  # means of two seeds
    assert _line(panels[0], "value in Table 1").get_xdata()[0] == 2


def test_a_weight_without_runs_says_so(make_sweep_run: Callable[..., RunResult]) -> None:
    runs = [make_sweep_run("lambda4", v) for v in (0.01, 0.1, 1.0)]
    figure = draw_weights(Experiment("coco66k", {"weights": runs}))
    assert [axes.get_title() for axes in figure.axes] == ["λ4, quantisation"]
    assert figure.get_supxlabel() == "64 bits; a random ranking scores 0.1300; not run: λ1, λ2, λ3"


def test_quality_against_bytes_has_every_length(everything: Experiment, make_result: Callable[..., RunResult]) -> None:
    reference = make_result(method="mlp", bits=0, ndcg=0.7)
    table = [*everything.of("table 1"), reference]
    axes = draw_bytes(Experiment("coco66k", {"table 1": table})).axes[0]
    assert _line(axes, "RMSH").get_xdata().tolist() == [2, 4, 8, 16]
    assert _line(axes, "no codes: MLP classifier").get_ydata()[0] == 0.7
    assert axes.get_title().endswith("a random ranking scores 0.1300")
    labels = [text.get_text() for text in axes.texts]  # upwards
    assert sorted(labels) == sorted(str(line.get_label()) for line in axes.lines)
    assert (labels[0], labels[-1]) == ("CMFH", "no codes: MLP classifier")


def test_quality_against_time_is_a_point_per_method(everything: Experiment) -> None:
    axes = draw_time(everything).axes[0]
    assert len(axes.lines) == 8
    point = _line(axes, "RMSH")
    assert point.get_xdata()[0] == pytest.approx(80.0)  # seconds made up as 20 + 100 * NDCG, first seed
    assert axes.get_xscale() == "log"


def test_presets_of_a_method_are_points_of_another_fill(make_result: Callable[..., RunResult]) -> None:
    runs = [make_result(ndcg=0.6), *(make_result(preset=name, ndcg=0.5) for name in ("paper", "paper-literal"))]
    points = draw_time(Experiment("coco66k", {"table 1": runs})).axes[0].lines
    assert [point.get_label() for point in points] == ["RMSH", "RMSH as printed"]
    assert [point.get_fillstyle() for point in points] == ["full", "left"]


def test_points_close_together_have_labels_that_cover_nothing(make_result: Callable[..., RunResult]) -> None:
    methods = ("cmfh", "uch", "seph", "dcmh", "tdh", "ssah", "svhn", "rmsh", "glint", "nest", "rotation")
    runs = [make_result(method, ndcg=0.5 + 0.01 * (n % 4) + 0.002 * n) for n, method in enumerate(methods)]
    axes = draw_time(Experiment("coco66k", {"table 1": runs})).axes[0]
    labels = [text for text in axes.texts if text.get_text()]
    assert {text.get_text() for text in labels} == {line.get_label() for line in axes.lines}
    boxes = [text.get_window_extent() for text in labels] + [line.get_window_extent() for line in axes.lines]
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])


def test_label_noise_falls_from_the_clean_labels(everything: Experiment) -> None:
    for axes in draw_label_noise(everything).axes:
        assert [line.get_label() for line in axes.lines] == ["DCMH", "RMSH", "random"]
        assert list(_line(axes, "RMSH").get_xdata()) == [0.0, 0.2, 0.4]
        assert list(_line(axes, "RMSH").get_ydata()) == pytest.approx([0.6, 0.48, 0.36])


def test_noise_in_a_modality_is_shown_where_it_is_the_query(everything: Experiment) -> None:
    panels = draw_query_noise(everything).axes
    assert [axes.get_title() for axes in panels] == ["I → T, noise in the images", "T → I, noise in the texts"]
    assert list(_line(panels[1], "DCMH").get_ydata()) == pytest.approx([0.42, 0.336, 0.252])


def test_noise_in_one_modality_alone_is_drawn(make_result: Callable[..., RunResult]) -> None:
    runs = [make_result(text_noise=v) for v in (0.0, 1.0)]
    panels = draw_query_noise(Experiment("coco66k", {"text noise": runs})).axes
    assert (len(panels[0].lines), len(panels[1].lines)) == (0, 2)
    assert [text.get_text() for text in panels[0].texts] == ["not run"]


def test_no_distribution_is_cut_off_at_the_top(make_sweep_run: Callable[..., RunResult]) -> None:
    runs = [make_sweep_run("delta", d) for d in (2.0, 4.0, 8.0)]
    runs[2].result["distances"]["i2t"]["3+"] = [0, 100, 0]  # all at one distance
    panels = draw_distances(Experiment("coco66k", {"delta": runs})).axes
    assert panels[0].get_ylim()[0] == 0
    assert panels[0].get_ylim()[1] > 1


def test_the_same_results_give_the_same_svg(everything: Experiment, tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        with style.applied():
            svg, _ = style.save(draw_delta(everything), tmp_path, name)
        files.append(svg.read_bytes())
    assert files[0] == files[1]
