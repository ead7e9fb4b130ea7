"""Noise in runs: its amount, and where it is added."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rmsh.compare.measure import disturb_features, with_noisy_labels
from rmsh.core.errors import DataError
from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.generated import generate_pairs


def test_swapping_changes_a_share_of_the_items_and_no_class_frequency() -> None:
    pairs = Pairs(ids=np.arange(100), labels=np.eye(100, dtype=np.uint8))  # type: ignore[arg-type]
    labels, noisy = (np.asarray(some.labels) for some in (pairs, with_noisy_labels(pairs, 0.3, seed=1)))
    assert (noisy != labels).any(axis=1).sum() == 30
    assert (noisy.sum(axis=0) == labels.sum(axis=0)).all()


def test_without_noise_the_pairs_are_unchanged() -> None:
    pairs = generate_pairs(20)
    assert with_noisy_labels(pairs, 0.0, seed=0) is pairs
    assert disturb_features(pairs, "image", 0.0, seed=0) is pairs


def test_noise_in_a_modality_is_relative_to_each_feature_and_leaves_the_other_alone() -> None:
    pairs = generate_pairs(4000)
    noisy = disturb_features(pairs, "image", 0.5, seed=0)
    added = (noisy.features("image") - pairs.features("image")).std(axis=0)  # type: ignore[operator]
    assert np.allclose(added / np.asarray(pairs.features("image")).std(axis=0), 0.5, atol=0.05)
    assert noisy.texts is pairs.texts


def test_noise_in_sparse_features_is_refused() -> None:
    bags = generate_pairs(20).with_column("text", sparse.csr_array(np.eye(20)))
    with pytest.raises(DataError, match=r"text.*dense"):
        disturb_features(bags, "text", 1.0, seed=0)
