"""Label probabilities: between 0 and 1, right where labels are easy, and linear where they are said to be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.classifiers import LogisticProbabilities, MLPProbabilities


@pytest.mark.parametrize("cls", [LogisticProbabilities, MLPProbabilities])
def test_an_item_has_its_own_labels_with_a_higher_probability(cls: type[MLPProbabilities]) -> None:
    pairs = generate_pairs(300, noise=0.5)
    method = cls(epochs=60, hidden=32, batch=32).fit(pairs)
    assert pairs.labels is not None
    for modality in ("image", "text"):
        probabilities = method.vectors(pairs.features(modality), modality)
        assert probabilities.min() >= 0
        assert probabilities.max() <= 1
        assert probabilities[pairs.labels == 1].mean() > 2 * probabilities[pairs.labels == 0].mean()


def test_the_logit_of_logistic_regression_is_linear_and_that_of_a_network_is_not() -> None:
    pairs = generate_pairs(100)
    ends = np.asarray(pairs.features("image"))[:2]
    line = np.stack([ends[0], ends.mean(axis=0), ends[1]])
    bend = {}
    for cls in (LogisticProbabilities, MLPProbabilities):
        logits = logit(cls(epochs=2, hidden=16).fit(pairs).vectors(line, "image").astype(np.float64))
        bend[cls] = np.abs(logits[1] - (logits[0] + logits[2]) / 2).max()
    assert bend[LogisticProbabilities] < 1e-4 < bend[MLPProbabilities]
