"""The bounds of three real label sets, against published and independently computed figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat

from rmsh.coding.bounds import choose_delta, lower_bound, upper_bound
from rmsh.coding.entropy import LabelStatistics


@pytest.fixture(scope="module")
def mirflickr(mirflickr_root: Path) -> LabelStatistics:
    return LabelStatistics.of(loadmat(mirflickr_root / "mirflickr25k-lall.mat")["LAll"])


@pytest.fixture(scope="module")
def coco66k(coco66k_root: Path) -> LabelStatistics:
    with np.load(coco66k_root / "labels.npz") as file:
        return LabelStatistics.of(np.unpackbits(file["labels"], axis=1, count=80))


def test_mirflickr_entropies(mirflickr: LabelStatistics) -> None:
    assert mirflickr.items == 20_015
    assert mirflickr.labels_per_item == pytest.approx(3.78, abs=0.005)
    assert mirflickr.entropy("independent") == pytest.approx(13.04, abs=0.005)
    assert mirflickr.entropy("joint") == pytest.approx(8.71, abs=0.005)


def test_mirflickr_lower_bounds(mirflickr: LabelStatistics) -> None:
    sizes, logs = mirflickr.similarity("size"), mirflickr.similarity("log2")
    assert [round(lower_bound(sizes, p), 1) for p in (0.6, 0.75, 0.9, 0.95)] == [6.9, 7.7, 10.0, 12.6]
    assert [round(lower_bound(logs, p), 1) for p in (0.75, 0.9, 0.95)] == [3.4, 4.4, 5.5]
    assert lower_bound(sizes) == pytest.approx(10.03, abs=0.005)


def test_mirflickr_estimated_lower_bounds(mirflickr: LabelStatistics) -> None:
    estimated = mirflickr.similarity("literal")
    assert [round(lower_bound(estimated, p), 1) for p in (0.75, 0.9, 0.95)] == [2.0, 2.6, 3.2]


@pytest.mark.parametrize(("bits", "paper", "tightest"), [(16, 1, 3), (32, 5, 8), (64, 16, 21), (128, 41, 48)])
def test_mirflickr_upper_bounds(mirflickr: LabelStatistics, bits: int, paper: int, tightest: int) -> None:
    assert upper_bound(bits, mirflickr.entropy("independent")) == paper
    assert upper_bound(bits, mirflickr.entropy("joint"), form="gilbert-varshamov") == tightest


@pytest.mark.parametrize(
    ("bits", "delta", "forms"),
    [
        (16, 3, ("literal", "joint")),
        (32, 5, ("log2", "independent")),
        (64, 13, ("size", "independent")),
        (128, 26, ("size", "independent")),
    ],
)
def test_mirflickr_deltas(mirflickr: LabelStatistics, bits: int, delta: int, forms: tuple[str, str]) -> None:
    choice = choose_delta(mirflickr, bits)
    assert (choice.delta, choice.feasible) == (delta, True)
    assert (choice.used.lower_form, choice.used.upper_form[0]) == forms


def test_mirflickr_at_eight_bits_is_flagged_infeasible(mirflickr: LabelStatistics) -> None:
    choice = choose_delta(mirflickr, 8)
    assert (choice.delta, choice.feasible, choice.used.upper) == (1, False, None)


def test_coco66k_statistics(coco66k: LabelStatistics) -> None:
    assert (coco66k.items, coco66k.without_labels, coco66k.classes) == (61_903, 0, 80)
    assert coco66k.labels_per_item == pytest.approx(2.95, abs=0.005)
    assert lower_bound(coco66k.similarity("log2")) == pytest.approx(3.9, abs=0.05)
    assert coco66k.entropy("joint") < coco66k.entropy("independent") < 16


@pytest.mark.parametrize("bits", [64, 128])
def test_coco66k_bounds_agree_with_the_paper_for_long_codes(coco66k: LabelStatistics, bits: int) -> None:
    choice = choose_delta(coco66k, bits)
    assert choice.paper.feasible
    assert choice.paper.lower < choice.delta < choice.paper.upper


@pytest.mark.slow
def test_coco66k_at_16_bits_needs_the_estimator_and_the_tightest_upper_bound(coco66k: LabelStatistics) -> None:
    choice = choose_delta(coco66k, 16)
    assert (choice.delta, choice.used.upper, choice.feasible) == (2, 2, True)
    assert (choice.used.lower_form, choice.used.upper_form[0]) == ("literal", "joint")
    assert choice.used.lower == pytest.approx(1.5, abs=0.1)


@pytest.fixture(scope="module")
def nuswide(nuswide_root: Path) -> LabelStatistics:
    """The labels of the images with one of the ten most frequent concepts."""
    with np.load(nuswide_root / "labels.npz") as file:
        labels = np.unpackbits(file["labels"], axis=1, count=81)
    frequent = labels[:, np.argsort(-labels.sum(axis=0, dtype=np.int64))[:10]]
    return LabelStatistics.of(frequent[frequent.any(axis=1)])


def test_nuswide_statistics(nuswide: LabelStatistics) -> None:
    assert (nuswide.items, nuswide.classes) == (186_577, 10)
    assert nuswide.labels_per_item == pytest.approx(1.78, abs=0.005)
    assert nuswide.entropy("independent") == pytest.approx(6.23, abs=0.005)
    assert nuswide.entropy("joint") == pytest.approx(5.05, abs=0.005)
    # By hand from the mean and the variance of the number of labels, 1.7804 and 0.9926: 1.7804 + sqrt(9.926).
    assert lower_bound(nuswide.similarity("size")) == pytest.approx(1.7804 + 3.1506, abs=0.001)


# log2 of the sum of C(64, i) for i < 25 is 58.94, just below 64 - 5.05.
@pytest.mark.parametrize(
    ("bits", "upper", "tightest", "delta"), [(16, 3, 4, 3), (32, 8, 11, 6), (64, 21, 25, 13), (128, 48, 53, 26)]
)
def test_nuswide_bounds(nuswide: LabelStatistics, bits: int, upper: int, tightest: int, delta: int) -> None:
    assert upper_bound(bits, nuswide.entropy("independent")) == upper
    assert upper_bound(bits, nuswide.entropy("joint"), form="gilbert-varshamov") == tightest
    choice = choose_delta(nuswide, bits)
    assert (choice.delta, choice.feasible, choice.paper.feasible) == (delta, True, bits > 16)
