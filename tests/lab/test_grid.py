"""Grids: YAML becomes runs, and errors name their location."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.grid import Grid, read_grid
from rmsh.compare.run import Run
from rmsh.core.errors import ConfigError

PROJECT = Path(__file__).resolve().parent.parent.parent
NO_GRIDS = ("trials.yaml", "chosen.yaml")


def _grid(folder: Path, blocks: str, top: str = "datasets: [a]") -> Grid:
    path = folder / "grid.yaml"
    path.write_text(f"{top}\nblocks:\n{blocks}\n")
    return read_grid(path)


def test_a_block_is_the_product_of_its_methods_lengths_and_seeds(tmp_path: Path) -> None:
    grid = _grid(tmp_path, "- {name: t, methods: [scm, cmfh], bits: [16, 32], seeds: [0, 1]}")
    assert len(grid.runs()) == 8
    assert grid.runs()[0] == Run("a", "scm", 16, 0)


def test_seeds_may_differ_by_length_and_first_seeds_come_first(tmp_path: Path) -> None:
    grid = _grid(tmp_path, "- {name: t, methods: [scm], bits: {64: [0, 1], 16: [0]}}")
    assert [(run.bits, run.seed) for run in grid.runs()] == [(64, 0), (16, 0), (64, 1)]


def test_a_run_of_two_blocks_is_made_once_where_it_comes_first(tmp_path: Path) -> None:
    blocks = "- {name: one, methods: [scm]}\n- {name: two, methods: [cmfh, scm]}"
    grid = _grid(tmp_path, blocks)
    assert [run.method for run in grid.runs()] == ["scm", "cmfh"]
    assert [run.method for run in grid.block("two")] == ["cmfh", "scm"]


def test_variants_and_sweeps_are_runs_with_a_name(tmp_path: Path) -> None:
    blocks = "- {name: t, methods: [rmsh], variants: {RMSH-T: {triplet: false}}, sweeps: {delta: [2, 4.5]}}"
    assert [(run.tag, dict(run.options)) for run in _grid(tmp_path, blocks).runs()] == [
        ("RMSH-T", {"triplet": False}),
        ("delta=2", {"delta": 2}),
        ("delta=4.5", {"delta": 4.5}),
    ]


def test_noise_levels_training_pairs_and_data_sets_are_passed_on(tmp_path: Path) -> None:
    blocks = "- {name: t, methods: [rmsh], label_noise: [0.0, 0.2], train: 50, validation: true, text: bag-of-words}"
    runs = _grid(tmp_path, blocks, "datasets: [a, b]").runs()
    assert [(run.dataset, run.label_noise) for run in runs] == [("a", 0.0), ("a", 0.2), ("b", 0.0), ("b", 0.2)]
    assert {(run.train, run.validation, run.text) for run in runs} == {(50, True, "bag-of-words")}


def test_chosen_options_are_used_but_not_with_a_preset_nor_where_the_block_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "chosen.yaml").write_text("rmsh: {learning_rate: 0.1, epochs: 3}")
    blocks = (
        "- {name: one, methods: [rmsh], presets: [null, paper], options: {epochs: 5}}\n"
        "- {name: two, methods: [rmsh], chosen: false}"
    )
    grid = _grid(tmp_path, blocks, "{datasets: [a], chosen: chosen.yaml}".strip("{}").replace(", ", "\n", 1))
    assert [dict(run.options) for run in grid.runs()] == [{"learning_rate": 0.1, "epochs": 5}, {"epochs": 5}, {}]
    assert [run.preset for run in grid.runs()] == [None, "paper", None]


def test_protocols_multiply_runs_and_prefixes_are_those_below_the_length(tmp_path: Path) -> None:
    blocks = (
        "- {name: t, methods: [scm], references: [mlp], bits: [64, 16], protocols: [paper, unseen], prefixes: [32, 64]}"
    )
    runs = _grid(tmp_path, blocks).runs()
    assert [(run.protocol, run.bits, run.prefixes) for run in runs] == [
        ("paper", 0, ()),
        ("unseen", 0, ()),
        ("paper", 64, (32,)),
        ("unseen", 64, (32,)),
        ("paper", 16, ()),
        ("unseen", 16, ()),
    ]
    assert all(Run(**run.to_json()).path == run.path for run in runs)


def test_reference_lines_are_runs_without_bits(tmp_path: Path) -> None:
    (run,) = _grid(tmp_path, "- {name: t, references: [mlp]}").runs()
    assert (run.method, run.bits) == ("mlp", 0)


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ("- {name: t, methods: [rmsh], bist: [16]}", r"block 1.*'bist'.*'bits'"),
        ("- {name: t, methods: [rmsh], train: many}", r"block 1.*'train'.*'many'"),
        ("- {name: t}", r"block 1.*'t'"),
        ("- {name: t, methods: [rmsh]}\n- {name: t, methods: [scm]}", r"block 2.*'t'"),
    ],
)
def test_a_mistake_in_a_block_is_named(tmp_path: Path, blocks: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        _grid(tmp_path, blocks)


@pytest.mark.parametrize(
    ("content", "said"),
    [("a: [", "grid.yaml.*YAML"), ("- a", "grid.yaml.*list"), ("blocks: []", "grid.yaml: .*'datasets'")],
)
def test_a_file_that_is_no_grid_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "grid.yaml").write_text(content)
    with pytest.raises(ConfigError, match=said):
        read_grid(tmp_path / "grid.yaml")


def test_a_missing_file_and_a_missing_block_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.yaml"):
        read_grid(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"'z'.*'t'"):
        _grid(tmp_path, "- {name: t, methods: [scm]}").block("z")


GRIDS = PROJECT / "lab" / "grids"
OURS = sorted({*GRIDS.glob("*.yaml")} - {GRIDS / name for name in NO_GRIDS})


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_own_grids_name_methods_and_options_that_exist(path: Path) -> None:
    from rmsh.compare.run import method_of

    for run in read_grid(path).runs():
        assert method_of(run).config.seed == run.seed
