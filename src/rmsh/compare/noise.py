"""Noise for robustness runs: wrong labels during training, disturbed features in queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.pairs import moments

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.data.pairs import Pairs


def with_noisy_labels(pairs: Pairs, share: float, *, seed: int) -> Pairs:
    """The same pairs, in which a share of the items has the label set of another item.

    The label sets of the selected items are rotated among them, so the frequency of each class does not change.
    """
    if not share:
        return pairs
    labels = np.asarray(pairs.labels)
    selected = np.random.default_rng(seed).permutation(len(labels))[: round(share * len(labels))]
    noisy = labels.copy()
    noisy[selected] = labels[np.roll(selected, 1)]
    return replace(pairs, labels=noisy)


def disturb_features(pairs: Pairs, modality: Modality, strength: float, *, seed: int) -> Pairs:
    """The same pairs with normal noise on each feature of a modality, ``strength`` times the feature's deviation."""
    if not strength:
        return pairs
    features = pairs.features(modality)
    if not isinstance(features, np.ndarray):
        raise DataError(f"{pairs.source}: the {modality} features are sparse; noise needs dense features.")
    _, deviation = moments(features)
    noise = np.random.default_rng(seed).standard_normal(features.shape, dtype=np.float32)
    return pairs.with_column(modality, features + noise * (strength * deviation).astype(np.float32))
