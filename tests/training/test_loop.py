"""The loop: it learns, reports, stops on nonsense, and goes on bit for bit after being killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from rmsh.core.errors import FormatError, TrainingError
from rmsh.core.progress import Progress
from rmsh.training import loop
from rmsh.training.loop import Batch, Losses, Schedule, TrainingSet, rate_at, save_checkpoint, train
from rmsh.training.networks import dropout_mask

SCHEDULE = Schedule(epochs=4, batch=8, rate=0.01, shape="one-cycle")


class Regression(nn.Module):
    """Predicts the labels from the images; random inside, so that a resumed run must restore its randomness."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.scale = scale
        self.fuse = -1  # the step at which the run is killed

    def forward(self, batch: Batch) -> Losses:
        self.fuse -= 1
        if self.fuse == 0:
            raise KeyboardInterrupt
        noisy = batch.images * dropout_mask(batch.images, 0.5)
        error = (self.linear(noisy) - batch.labels).square().mean() * self.scale
        return Losses({"error": error}, {"watched": 2.0})


def _data(n: int = 50) -> TrainingSet:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(n, 5)).astype(np.float32)
    return TrainingSet(images, images[:, :2], (images[:, :3] > 0).astype(np.uint8))


def _model(scale: float = 1.0) -> Regression:
    torch.manual_seed(1)
    return Regression(scale)


def test_the_loss_falls_and_watched_values_are_reported_but_not_minimised() -> None:
    reports: list[Progress] = []
    history = train(_model(), _data(), stages=[SCHEDULE], seed=0, on_progress=reports.append)
    assert history[-1]["error"] < history[0]["error"]
    assert [report.done for report in reports] == [1, 2, 3, 4]
    assert reports[0].values["watched"] == pytest.approx(2.0)


def test_the_same_seed_gives_the_same_weights_and_another_seed_does_not() -> None:
    weights = []
    for seed in (3, 3, 4):
        model = _model()
        train(model, _data(), stages=[SCHEDULE], seed=seed)
        weights.append(model.linear.weight.detach())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("fuse", [1, 9, 20])
def test_a_run_killed_at_any_step_goes_on_to_identical_weights(tmp_path: Path, fuse: int) -> None:
    whole = _model()
    expected = train(whole, _data(), stages=[SCHEDULE], seed=0)
    killed, file = _model(), tmp_path / "checkpoint.safetensors"
    killed.fuse = fuse
    with pytest.raises(KeyboardInterrupt):
        train(killed, _data(), stages=[SCHEDULE], seed=0, checkpoint=file)
    resumed = _model()
    history = train(resumed, _data(), stages=[SCHEDULE], seed=0, checkpoint=file)
    assert torch.equal(resumed.linear.weight, whole.linear.weight)
    assert history == expected


def test_a_run_of_many_epochs_is_kept_fifty_times_and_goes_on_to_identical_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, kept = Schedule(120, 12, 0.01), []

    def save(*given: Any, history: list[dict[str, float]], **more: Any) -> None:
        kept.append(len(history))
        save_checkpoint(*given, history=history, **more)

    monkeypatch.setattr(loop, "save_checkpoint", save)
    whole, killed, resumed = _model(), _model(), _model()
    expected = train(whole, _data(), stages=[schedule], seed=0)
    killed.fuse = 31
    with pytest.raises(KeyboardInterrupt):
        train(killed, _data(), stages=[schedule], seed=0, checkpoint=tmp_path / "checkpoint")
    assert train(resumed, _data(), stages=[schedule], seed=0, checkpoint=tmp_path / "checkpoint") == expected
    assert torch.equal(resumed.linear.weight, whole.linear.weight)
    assert kept == list(range(3, 121, 3))


def test_the_callers_random_state_is_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    model = _model()
    torch.manual_seed(5)
    train(model, _data(), stages=[SCHEDULE], seed=0)
    assert torch.equal(torch.rand(1), expected)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]


def test_a_loss_that_is_not_finite_stops_with_a_sentence() -> None:
    with pytest.raises(TrainingError, match=r"epoch 1, step 1 \(error inf\).*0\.01"):
        train(_model(scale=float("inf")), _data(), stages=[SCHEDULE], seed=0)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.safetensors"
    train(_model(), _data(), stages=[SCHEDULE], seed=0, checkpoint=file, fingerprint="one")
    with pytest.raises(FormatError, match=r"checkpoint\.safetensors"):
        train(_model(), _data(), stages=[SCHEDULE], seed=0, checkpoint=file, fingerprint="two")


@pytest.mark.parametrize("content", [b"", b"not a checkpoint at all", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(content)
    with pytest.raises(FormatError, match=r"checkpoint\.safetensors"):
        train(_model(), _data(), stages=[SCHEDULE], seed=0, checkpoint=file)


def test_a_constant_rate_is_constant_and_steps_are_cut_evenly() -> None:
    assert {rate_at(p, Schedule(1, 1, 0.5)) for p in (0.0, 0.3, 1.0)} == {0.5}
    sizes: list[int] = []

    class Counting(Regression):
        def forward(self, batch: Batch) -> Losses:
            sizes.append(len(batch.rows))
            return super().forward(batch)

    train(Counting(), _data(17), stages=[Schedule(1, 8, 0.1)], seed=0)
    assert sorted(sizes) == [8, 9]


def test_features_of_a_batch_are_aligned_so_that_equal_runs_have_equal_sums() -> None:
    features = np.arange(700, dtype=np.float32).reshape(100, 7)
    data = TrainingSet(features, sparse.csr_array(features), np.ones((100, 2), dtype=np.uint8))
    batches = [data.batch(np.arange(n)) for n in range(3, 40)]
    assert all(tensor.data_ptr() % 64 == 0 for batch in batches for tensor in (batch.images, batch.texts))


def test_a_linear_rate_falls_to_zero() -> None:
    schedule = Schedule(1, 1, 0.5, "linear")
    assert [rate_at(p, schedule) for p in (0.0, 0.5, 1.0)] == [0.5, 0.25, 0.0]


def test_an_objective_with_work_between_epochs_is_told_of_each_and_after_a_resume_of_the_rest(tmp_path: Path) -> None:
    told: list[int] = []

    class Staged(Regression):
        def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
            told.append(epoch)

    killed, file = Staged(), tmp_path / "checkpoint.safetensors"
    killed.fuse = 9  # in the second epoch of 6 steps
    with pytest.raises(KeyboardInterrupt):
        train(killed, _data(), stages=[SCHEDULE], seed=0, checkpoint=file)
    train(Staged(), _data(), stages=[SCHEDULE], seed=0, checkpoint=file)
    assert told == [0, 1, 1, 2, 3]


def test_a_parameter_without_a_part_in_the_loss_is_left_alone() -> None:
    model = _model()
    model.idle = nn.Linear(2, 2)
    before = model.idle.weight.detach().clone()
    train(model, _data(), stages=[SCHEDULE], seed=0)
    assert torch.equal(model.idle.weight, before)


def test_a_run_of_two_stages_goes_through_the_rates_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(loop, "rate_at", lambda progress, schedule: seen.append(progress) or schedule.rate)
    train(_model(), _data(16), stages=[Schedule(1, 8, 0.1, "linear")] * 2, seed=0)
    assert seen == [0.25, 0.75, 0.25, 0.75]
