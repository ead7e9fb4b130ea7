"""Noise: labels that are wrong while a method learns, features that are disturbed when it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.pairs import moments

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray, Modality
    from rmsh.data.pairs import Pairs


def swap_labels(labels: LabelArray, share: float, *, seed: int) -> LabelArray:
    """The labels (n, C) of all items, where a share of the items has been given the label set of another.

    The label sets of the chosen items go round among them, so that every class stays as frequent as it was.

    Example:
        >>> labels = np.eye(4, dtype=np.uint8)
        >>> noisy = swap_labels(labels, 0.5, seed=0)
        >>> int((noisy != labels).any(axis=1).sum()), noisy.sum(axis=0).tolist()
        (2, [1, 1, 1, 1])
    """
    chosen = np.random.default_rng(seed).permutation(len(labels))[: round(share * len(labels))]
    noisy = labels.copy()
    noisy[chosen] = labels[np.roll(chosen, 1)]
    return noisy


def with_noisy_labels(pairs: Pairs, share: float, *, seed: int) -> Pairs:
    """The same pairs with a share of the label sets swapped."""
    if not share:
        return pairs
    if pairs.labels is None:
        raise DataError(f"{pairs.source}: label noise was asked for, and there are no labels; leave it out.")
    return replace(pairs, labels=swap_labels(pairs.labels, share, seed=seed))


def disturb_features(pairs: Pairs, modality: Modality, strength: float, *, seed: int) -> Pairs:
    """The same pairs with normal noise on each feature of a modality, ``strength`` times the feature's deviation."""
    if not strength:
        return pairs
    features = pairs.features(modality)
    if not isinstance(features, np.ndarray):
        raise DataError(f"{pairs.source}: noise in sparse {modality} features was asked for; they must be dense.")
    _, deviation = moments(features)
    noise = np.random.default_rng(seed).standard_normal(features.shape, dtype=np.float32)
    return pairs.with_column(modality, features + noise * (strength * deviation).astype(np.float32))
