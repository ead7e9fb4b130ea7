"""Runs: the path of a result follows from the parameters, and values out of range are refused."""

from __future__ import annotations

import pytest

from rmsh.compare.run import Run
from rmsh.core.errors import ConfigError


def test_a_plain_run_has_a_readable_path_without_a_hash() -> None:
    assert str(Run("coco66k", "dcmh", 32, 1).path) == "coco66k/dcmh-32-s1.json"


def test_a_reference_line_has_no_length_in_its_path() -> None:
    assert str(Run("coco66k", "mlp", 0).path) == "coco66k/mlp-s0.json"


def test_paths_stay_what_they_are_so_that_old_results_are_found() -> None:
    run = Run("coco66k", "rmsh", 128, preset="paper", options={"delta": 16, "triplet": False}, train=20_000)
    assert str(run.path) == "coco66k/rmsh-128-s0-da34eef1.json"


@pytest.mark.parametrize(
    "change",
    [
        {"preset": "paper"},
        {"options": {"epochs": 3}},
        {"text": "bag-of-words"},
        {"train": 100},
        {"validation": True},
        {"label_noise": 0.2},
        {"image_noise": 0.5},
        {"text_noise": 0.5},
        {"k": 50},
        {"protocol": "unseen"},
        {"prefixes": (16, 32)},
    ],
)
def test_every_parameter_changes_the_path(change: dict[str, object]) -> None:
    paths = {Run("a", "rmsh").path, Run("a", "rmsh", **change).path}
    assert len(paths) == 2


def test_the_order_of_options_and_the_way_a_number_is_written_do_not_change_the_path() -> None:
    one = Run("a", "rmsh", options={"delta": 2, "lambda1": 0.1})
    other = Run("a", "rmsh", options={"lambda1": 0.1, "delta": 2.0})
    assert one.path == other.path


def test_the_name_in_a_table_changes_neither_path_nor_equality() -> None:
    assert Run("a", "rmsh", tag="ours") == Run("a", "rmsh")
    assert Run("a", "rmsh", tag="ours").path == Run("a", "rmsh").path


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"bits": 513}, "513.*512"),
        ({"train": 2}, "train is 2"),
        ({"label_noise": 1.5}, "1.5.*0 to 1"),
        ({"image_noise": -1}, "image_noise is -1"),
        ({"text_noise": -1}, "text_noise -1"),
        ({"k": 0}, "k is 0"),
        ({"protocol": "seen"}, "'seen'.*paper, unseen"),
        ({"prefixes": (32, 64)}, r"\[32, 64\].*below 64"),
    ],
)
def test_a_number_out_of_range_is_refused(values: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Run("a", "rmsh", **values)
