"""Relaxed codes on paper: t-SNE of test pictures and texts of six classes, as a small file of points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.types import MODALITIES

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, LabelArray
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import Method

__all__ = ["choose_classes", "embed"]

CLASSES = 6
MOST_ITEMS = 80  # of a class
_PERPLEXITY = 30.0


def choose_classes(labels: LabelArray, count: int = CLASSES) -> list[int]:
    """Classes that most items have exactly one of: each is taken that adds the most such items.

    Example:
        >>> choose_classes(np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.uint8), 2)
        [0, 2]
    """
    chosen: list[int] = []
    held = np.zeros(len(labels), dtype=np.int64)
    for _ in range(min(count, labels.shape[1])):
        alone = ((held[:, None] + labels) == 1).sum(axis=0)
        alone[chosen] = -1
        best = int(alone.argmax())
        chosen.append(best)
        held += labels[:, best]
    return chosen


def embed(method: Method, pairs: Pairs, *, seed: int = 0) -> dict[str, Any]:
    """Points of the pictures and texts of items with exactly one of six classes, in one common plane.

    Args:
        method: that has learned; its relaxed outputs are what is laid out.
        pairs: items with labels that it has not learned from.
        seed: of the choice of items, and of t-SNE.

    Returns:
        The names of the classes, and for each modality [x, y, class] of each item, in the same order of items.
    """
    labels = np.asarray(pairs.labels)
    classes = choose_classes(labels)
    rows, kinds = _choose_items(labels[:, classes], seed)
    outputs = [method.project(pairs.take(rows).features(modality), modality) for modality in MODALITIES]
    plane = _lay_out(np.concatenate(outputs), seed)
    halves = np.split(plane, len(MODALITIES))
    points = {
        modality: [
            [round(float(x), 2), round(float(y), 2), int(kind)] for (x, y), kind in zip(half, kinds, strict=True)
        ]
        for modality, half in zip(MODALITIES, halves, strict=True)
    }
    return {"classes": [pairs.class_names[c] for c in classes], "points": points}


def _choose_items(labels: LabelArray, seed: int) -> tuple[IntArray, IntArray]:
    """At most so many items of each class that have no other of them, and which class it is."""
    rng = np.random.default_rng(seed)
    alone = labels.sum(axis=1) == 1
    chosen = [np.sort(rng.permutation(np.flatnonzero(alone & (c == 1)))[:MOST_ITEMS]) for c in labels.T]
    return np.concatenate(chosen), np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen])


def _lay_out(values: Any, seed: int) -> Any:
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(values) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=seed).fit_transform(values)
