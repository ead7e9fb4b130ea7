"""Statistics of labels: who counts, and that costly parts are computed once."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.coding import entropy as statistics_module
from rmsh.coding.entropy import LabelStatistics
from rmsh.core.errors import DataError


def test_items_without_labels_are_left_out_and_counted() -> None:
    statistics = LabelStatistics.of(np.array([[0, 0], [1, 1], [0, 0], [1, 0]]))
    assert (statistics.items, statistics.without_labels, statistics.classes) == (2, 2, 2)
    assert statistics.labels_per_item == 1.5
    assert statistics.entropy("independent") == 1  # of the two items with labels only


def test_the_estimator_runs_once_and_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = statistics_module.similarity_entropy
    monkeypatch.setattr(
        statistics_module, "similarity_entropy", lambda labels, form: asked.append(form) or original(labels, form)
    )
    statistics = LabelStatistics.of(np.eye(3))
    statistics.similarity("size")
    assert statistics.similarity("literal") is statistics.similarity("literal")
    assert asked == ["size", "literal"]


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array([[0, 2]]), np.array([[0.5]]), np.array([[np.nan]])])
def test_what_is_no_label_matrix_is_refused(labels: np.ndarray) -> None:
    with pytest.raises(DataError, match="must be 0 or 1"):
        LabelStatistics.of(labels)


@pytest.mark.parametrize("shape", [(3, 2), (0, 2)])
def test_labels_are_needed(shape: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=f"None of {shape[0]} items has a label"):
        LabelStatistics.of(np.zeros(shape))
