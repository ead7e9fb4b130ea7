"""Results by the blocks of their grid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.grid import read_grid
from lab.paper.results import Experiment, Method, RunResult, deviation, mean_score, read_experiments
from rmsh.compare.result import write_result
from rmsh.core.errors import ConfigError, FormatError

GRID = """
datasets: [made, other]
blocks:
  - name: "table 1: plain"
    methods: [scm, rmsh]
    bits: [16]
  - name: "table 1: more seeds"
    methods: [rmsh]
    bits: {16: [0, 1]}
  - name: delta
    methods: [rmsh]
    bits: [16]
    sweeps: {delta: [2, 4]}
  - name: something else
    datasets: [made]
    methods: [cmfh]
"""


def _grid(folder: Path, text: str = GRID) -> Path:
    (folder / "grid.yaml").write_text(text)
    return folder / "grid.yaml"


def test_results_are_grouped_by_the_blocks_of_the_grid(make_result: Callable[..., RunResult], tmp_path: Path) -> None:
    stored = make_result("made", "rmsh", bits=16, ndcg=0.7)
    unrelated = make_result("made", "rmsh", bits=16, options={"epochs": 3})
    for result in (stored, unrelated):
        write_result(tmp_path / result.run.path, result.result)
    made, other = read_experiments(read_grid(_grid(tmp_path)), tmp_path)
    paths = [result.run.path.name for result in made.of("table 1")]
    assert paths == ["scm-16-s0.json", "rmsh-16-s0.json", "rmsh-16-s1.json"]
    assert [result.run.path.name for result in made.all if result.done] == ["rmsh-16-s0.json"]
    assert [result.run.tag for result in made.of("delta")] == ["delta=2", "delta=4"]
    assert len(made.of("something else")) == 1
    assert all(result.missing for result in other.all)


def test_a_result_of_earlier_code_counts_as_missing(make_result: Callable[..., RunResult], tmp_path: Path) -> None:
    stored = make_result("made", "scm", bits=16)
    write_result(tmp_path / stored.run.path, {**stored.result, "method_version": 0})
    result = read_experiments(read_grid(_grid(tmp_path)), tmp_path)[0].of("table 1")[0]
    assert (result.missing, result.done, result.result["status"]) == (True, False, "earlier")
    assert "version 0 of scm" in result.result["reason"]


def test_a_grid_without_a_known_block_is_refused(tmp_path: Path) -> None:
    grid = _grid(tmp_path, "{datasets: [made], blocks: [{name: tables, methods: [scm]}]}")
    with pytest.raises(ConfigError, match=r"'tables'.*'table 1'"):
        read_experiments(read_grid(grid), tmp_path)


def test_a_file_that_is_not_a_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "scm-16-s0.json").write_text("{}")
    with pytest.raises(FormatError, match=r"scm-16-s0\.json"):
        read_experiments(read_grid(_grid(tmp_path)), tmp_path)


def test_a_sweep_has_the_runs_of_its_option_and_those_with_defaults(
    make_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    runs = [make_sweep_run("delta", d, ndcg=d / 10) for d in (4.0, 2.0)]
    experiment = Experiment("made", {"delta": [*runs, make_sweep_run("lambda1", 1.0), make_result()]})
    sweep = experiment.sweep("delta", "delta")
    assert list(sweep.points) == [2.0, 4.0, 24.0]  # the last is computed from the bounds
    assert sweep.means("i2t") == [0.2, 0.4, 0.5]


def test_a_sweep_finds_defaults_in_the_configuration(
    make_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    runs = [make_sweep_run("lambda1", 1.0), make_sweep_run("lambda1", 2.0), make_result()]
    assert list(Experiment("made", {"weights": runs}).sweep("weights", "lambda1").points) == [0.3, 1.0, 2.0]


def test_a_sweep_needs_three_values_with_scores(
    fail_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    runs = [make_sweep_run("delta", 2.0), make_sweep_run("delta", 4.0)]
    runs.append(fail_result(options={"delta": 8.0}, tag="delta=8"))
    assert Experiment("made", {"delta": runs}).sweep("delta", "delta") is None


def test_seeds_are_averaged_and_their_deviation_is_that_of_a_sample(make_result: Callable[..., RunResult]) -> None:
    group = [make_result(seed=seed, ndcg=score) for seed, score in enumerate((0.5, 0.6, 0.7))]
    assert mean_score(group, "i2t") == pytest.approx(0.6)
    assert deviation(group, "i2t") == pytest.approx(0.1)
    assert deviation(group[:1], "i2t") is None


def test_studies_as_printed_are_those_with_the_preset_of_the_paper(
    make_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    tuned, printed = (
        [*(make_sweep_run("delta", d, preset=preset) for d in (2.0, 4.0)), make_result(preset=preset, tag=preset or "")]
        for preset in (None, "paper")
    )
    compared = [make_result(ndcg=0.7), make_result(preset="paper", ndcg=0.6), make_result(method="tdh", ndcg=0.65)]
    experiment = Experiment("made", {"delta": tuned + printed, "table 1": compared})
    assert experiment.of("delta") == tuned
    assert experiment.as_printed.of("delta") == printed
    assert list(experiment.as_printed.sweep("delta", "delta").points) == [2.0, 4.0, 24.0]
    assert experiment.comparison.ranked(64, "i2t") == [Method("rmsh"), Method("tdh")]
    assert experiment.as_printed.comparison.ranked(64, "i2t") == [Method("tdh"), Method("rmsh", "paper")]


def test_the_noise_of_a_method_is_that_of_all_its_lengths_and_presets(make_result: Callable[..., RunResult]) -> None:
    runs = [make_result(seed=seed, ndcg=0.5 + 0.01 * seed) for seed in range(3)]
    runs += [make_result(method="tdh", seed=seed, ndcg=0.4 + 0.01 * seed) for seed in range(3)]
    runs += [make_result(bits=16, preset="paper", ndcg=0.3), make_result(method="tdh", bits=16, ndcg=0.35)]
    comparison = Experiment("made", {"table 1": runs}).comparison
    found = comparison.compare(Method("rmsh", "paper"), Method("tdh"), 16, "i2t")
    assert found.value == pytest.approx(-0.05)
    assert found.margin == pytest.approx(2.776 * (2 * 0.0001) ** 0.5, abs=1e-4)  # four degrees of freedom
    assert comparison.compare(Method("rmsh"), Method("tdh"), 16, "i2t") is None


def test_methods_are_ranked_by_their_mean_without_failed_runs(
    make_result: Callable[..., RunResult], fail_result: Callable[..., RunResult]
) -> None:
    runs = [
        make_result(method="tdh", ndcg=0.4),
        make_result(method="tdh", seed=1, ndcg=0.7),
        make_result(method="rmsh", ndcg=0.5),
        fail_result(method="ssah"),
        make_result(method="scm", ndcg=0.9),
    ]
    ranked = Experiment("made", {"table 1": runs}).comparison.ranked(64, "i2t")
    assert ranked == [Method("tdh"), Method("rmsh")]  # scm is not one of the eight


def test_presets_are_rows_and_a_reference_is_the_same_at_all_lengths(make_result: Callable[..., RunResult]) -> None:
    runs = [make_result(bits=16), make_result(bits=16, preset="paper"), make_result(method="mlp", bits=0)]
    comparison = Experiment("made", {"table 1": runs}).comparison
    assert set(comparison.runs) == {Method("rmsh"), Method("rmsh", "paper"), Method("mlp")}
    assert comparison.bits == [16]
    assert comparison.cell(Method("mlp"), 16) == comparison.cell(Method("mlp"), 64) != []


def test_the_full_method_of_an_ablation_may_be_that_of_table_1(make_result: Callable[..., RunResult]) -> None:
    full = make_result(bits=16)
    own = make_result(bits=32, train=50, tag="RMSH")
    variants = [make_result(bits=b, options={"triplet": False}, tag="RMSH-T") for b in (16, 32)]
    experiment = Experiment("made", {"table 1": [full, make_result(bits=32)], "ablation": [*variants, own]})
    lengths = experiment.ablation()
    assert lengths[16] == {"RMSH-T": [variants[0]], "RMSH": [full]}
    assert lengths[32] == {"RMSH-T": [variants[1]], "RMSH": [own]}


def test_the_full_method_of_table_1_is_not_compared_with_variants_of_fewer_pairs(
    make_result: Callable[..., RunResult],
) -> None:
    variant = make_result(bits=16, train=50, options={"triplet": False}, tag="RMSH-T")
    experiment = Experiment("made", {"table 1": [make_result(bits=16)], "ablation": [variant]})
    assert experiment.ablation()[16]["RMSH"] == []


def test_one_length_is_the_papers_64_bits_or_the_one_with_the_most_results(
    make_result: Callable[..., RunResult],
) -> None:
    shorter = [make_result(bits=16), make_result(method="dcmh", bits=16), make_result(bits=32)]
    assert Experiment("made", {"table 1": shorter}).comparison.usual_bits == 16
    assert Experiment("made", {"table 1": [*shorter, make_result(bits=64)]}).comparison.usual_bits == 64
