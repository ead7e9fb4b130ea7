"""Generated pairs: related image and text features with labels, for demonstrations and tests.

An item has one to four labels. Some classes are frequent and some rare, and classes of one scene (such as a kitchen)
occur together. Each label of an item has a prominence; each modality is a nonlinear mixture of the same prominences
with separate noise, so that retrieval across modalities works, but not without error.
"""

from __future__ import annotations

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.types import LabelArray, ScoreArray
from rmsh.data.pairs import Pairs

SCENES = (
    ("person", "dog", "ball", "tree", "bench", "kite"),
    ("car", "bicycle", "bus", "house", "lamp", "bridge"),
    ("table", "cup", "bread", "knife", "apple", "cake"),
    ("boat", "bird", "beach", "cloud", "fish", "island"),
)
# One class of each scene in turn, so that even a few classes cover all scenes.
CLASS_NAMES = tuple(name for rank in zip(*SCENES, strict=True) for name in rank)
LABEL_COUNTS = (0.35, 0.3, 0.2, 0.15)  # probability of 1, 2, 3, 4 labels
TOGETHER = 2.0  # increase of the log-odds of a class if the item shows its scene


def generate_pairs(
    n: int = 2000, classes: int = 12, *, image_dim: int = 128, text_dim: int = 64, noise: float = 1.5, seed: int = 0
) -> Pairs:
    """Generate pairs of features with labels.

    There are 4 to 24 ``classes``. ``image_dim`` and ``text_dim`` are the widths of the features; ``noise`` 0 is easy, 3
    is hard.

    Example:
        >>> pairs = generate_pairs(100)
        >>> pairs.images.shape, pairs.texts.shape, pairs.labels.shape, pairs.class_names[:3]
        ((100, 128), (100, 64), (100, 12), ('person', 'car', 'table'))
    """
    if n < 1 or not 4 <= classes <= len(CLASS_NAMES) or min(image_dim, text_dim) < 1 or not noise >= 0:
        given = f"n={n}, classes={classes}, image_dim={image_dim}, text_dim={text_dim}, noise={noise}"
        allowed = f"1 item or more, 4 to {len(CLASS_NAMES)} classes, 1 dimension or more and a noise of 0 or more"
        raise DataError(f"Got {given}; give {allowed}.")
    rng = np.random.default_rng(seed)
    labels = _draw_labels(n, classes, rng)
    prominence = labels * rng.uniform(0.5, 1.5, size=labels.shape)
    return Pairs(
        ids=np.char.add("item-", np.arange(n).astype(np.str_)),
        images=_draw_features(prominence, image_dim, noise, rng),
        texts=_draw_features(prominence, text_dim, noise, rng),
        labels=labels,
        class_names=CLASS_NAMES[:classes],
        source="generated pairs",
    )


def _draw_labels(n: int, classes: int, rng: np.random.Generator) -> LabelArray:
    """One to four classes per item, by the largest of noisy log-odds: a first class, then others of its scene."""
    log_odds = -0.7 * np.log(1 + np.arange(classes))  # the frequencies fall like a power of the rank
    scene = np.arange(classes) % len(SCENES)
    first = np.argmax(log_odds + rng.gumbel(size=(n, classes)), axis=1)
    scores = log_odds + TOGETHER * (scene[first][:, None] == scene) + rng.gumbel(size=(n, classes))
    scores[np.arange(n), first] = np.inf
    counts = rng.choice(len(LABEL_COUNTS), size=n, p=LABEL_COUNTS) + 1
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    return (ranks < counts[:, None]).astype(np.uint8)


def _draw_features(prominence: ScoreArray, dim: int, noise: float, rng: np.random.Generator) -> ScoreArray:
    """Features like those of a frozen network: a random nonlinear layer over noisy content, (n, dim)."""
    n, classes = prominence.shape
    hidden = 2 * classes
    content = prominence @ rng.normal(size=(classes, hidden)) + noise * rng.normal(size=(n, hidden))
    layer: ScoreArray = np.tanh(content @ rng.normal(size=(hidden, dim)) / np.sqrt(classes))
    return layer + 0.3 * noise * rng.normal(size=(n, dim))
