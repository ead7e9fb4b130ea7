"""Entropies of labels: hand-worked cases, a brute-force reading of the paper's estimator, and laws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rmsh.coding import entropy as entropy_module
from rmsh.coding.entropy import (
    LabelStatistics,
    binary_entropy,
    inverse_binary_entropy,
    label_entropy,
    similarity_entropy,
)
from rmsh.core.errors import ConfigError, DataError, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

label_matrices = st.tuples(st.integers(1, 12), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.uint8, shape, elements=st.integers(0, 1))
)


def labelled(labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same items, each with at least one label."""
    return np.concatenate([labels, np.ones((len(labels), 1), dtype=np.uint8)], axis=1)


def estimated_by_definition(labels: NDArray[np.uint8], i: int) -> float:
    """H_i item by item, with exact comparisons of whole numbers."""
    sets = [frozenset(np.flatnonzero(row)) for row in labels]
    not_larger = [other for other in sets if len(other) <= len(sets[i])]
    parts = [sum(len(sets[i] & other) == j for other in not_larger) for j in range(1, len(sets[i]) + 1)]
    return -sum(n / len(not_larger) * math.log2(n / len(not_larger)) for n in parts if n)


def test_certainty_has_no_entropy_and_a_fair_coin_has_one_bit() -> None:
    assert binary_entropy([0, 1, 0.5]).tolist() == [0, 0, 1]


def test_binary_entropy_by_hand() -> None:
    assert float(binary_entropy(0.25)) == pytest.approx(2 - 0.75 * math.log2(3))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_an_invalid_probability_is_refused(p: float) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        binary_entropy([0.5, p])


@given(st.floats(0, 0.499))
def test_the_inverse_undoes_the_binary_entropy(p: float) -> None:
    assert inverse_binary_entropy(float(binary_entropy(p))) == pytest.approx(p, abs=1e-7)


def test_the_inverse_reaches_both_ends() -> None:
    assert inverse_binary_entropy(0) == pytest.approx(0, abs=1e-15)
    assert inverse_binary_entropy(1) == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize("entropy", [-0.01, 1.01, math.nan])
def test_one_bit_cannot_have_another_entropy(entropy: float) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        inverse_binary_entropy(entropy)


def test_classes_that_all_or_none_have_add_nothing() -> None:
    labels = np.array([[1, 0, 1], [1, 0, 0]], dtype=np.uint8)
    assert label_entropy(labels) == 1


def test_joint_entropy_counts_label_sets() -> None:
    labels = np.array([[1, 1], [1, 1], [0, 1], [1, 0]], dtype=np.uint8)
    assert label_entropy(labels, "joint") == pytest.approx(1.5)
    assert label_entropy(labels, "independent") == pytest.approx(2 * float(binary_entropy(0.25)))


@given(label_matrices)
def test_joint_entropy_is_never_above_the_independent_one_nor_above_log2_n(labels: NDArray[np.uint8]) -> None:
    joint = label_entropy(labels, "joint")
    assert joint <= label_entropy(labels, "independent") + 1e-9
    assert joint <= math.log2(len(labels)) + 1e-9


def test_size_and_log2_of_a_label_set() -> None:
    labels = np.array([[1, 1, 1, 1], [0, 1, 0, 0]], dtype=np.uint8)
    assert similarity_entropy(labels).tolist() == [4, 1]
    assert similarity_entropy(labels, "log2").tolist() == [2, 0]


def test_the_estimator_leaves_out_larger_label_sets() -> None:
    # For {a}: itself and {b} are not larger, one of the two shares a label: -1/2 log2 1/2. The three-label set is out.
    labels = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1]], dtype=np.uint8)
    expected = [0.5, 0.5, -(2 / 3 * math.log2(2 / 3) + 1 / 3 * math.log2(1 / 3))]
    assert similarity_entropy(labels, "literal") == pytest.approx(expected)


@given(label_matrices.map(labelled))
def test_the_estimator_equals_its_definition(labels: NDArray[np.uint8]) -> None:
    expected = [estimated_by_definition(labels, i) for i in range(len(labels))]
    assert similarity_entropy(labels, "literal") == pytest.approx(expected)


def test_small_blocks_give_the_same_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = labelled(np.random.default_rng(0).integers(0, 2, (60, 6), dtype=np.uint8))
    whole = similarity_entropy(labels, "literal")
    monkeypatch.setattr(entropy_module, "BLOCK_ENTRIES", 1)
    assert np.array_equal(similarity_entropy(labels, "literal"), whole)


@pytest.mark.parametrize("form", ["size", "log2", "literal"])
def test_an_item_without_labels_has_no_similarities(form: entropy_module.SimilarityForm) -> None:
    with pytest.raises(InputError, match="row 1 has no label"):
        similarity_entropy(np.array([[1], [0]], dtype=np.uint8), form)


@pytest.mark.parametrize("function", [label_entropy, similarity_entropy])
def test_an_unknown_form_is_refused_with_the_known_ones(function: object) -> None:
    with pytest.raises(ConfigError, match="'mean'"):
        function(np.ones((2, 2), dtype=np.uint8), "mean")


def test_items_without_labels_are_left_out_and_counted() -> None:
    statistics = LabelStatistics.of(np.array([[0, 0], [1, 1], [0, 0], [1, 0]]))
    assert (statistics.items, statistics.without_labels, statistics.classes) == (2, 2, 2)
    assert statistics.labels_per_item == 1.5
    assert statistics.entropy("independent") == 1  # of the two items with labels only


def test_the_estimator_runs_lazily_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = entropy_module.similarity_entropy
    monkeypatch.setattr(
        entropy_module, "similarity_entropy", lambda labels, form: asked.append(form) or original(labels, form)
    )
    statistics = LabelStatistics.of(np.eye(3))
    statistics.similarity("size")
    assert statistics.similarity("literal") is statistics.similarity("literal")
    assert asked == ["size", "literal"]


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array([[0, 2]]), np.array([[0.5]]), np.array([[np.nan]])])
def test_an_invalid_label_matrix_is_refused(labels: np.ndarray) -> None:
    with pytest.raises(DataError, match="must be 0 or 1"):
        LabelStatistics.of(labels)


@pytest.mark.parametrize("shape", [(3, 2), (0, 2)])
def test_labels_are_needed(shape: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=f"None of {shape[0]} items has a label"):
        LabelStatistics.of(np.zeros(shape))
