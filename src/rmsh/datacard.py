"""The figures of a data card, from pairs and their split.

A data card in words: what is declared of a benchmark, and the figures of a card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes
from rmsh.coding.bounds import choose_delta
from rmsh.coding.entropy import LabelStatistics
from rmsh.core.errors import DataError
from rmsh.data.labels import class_frequency
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.coding.bounds import DeltaChoice
    from rmsh.core.types import IntArray, LabelArray
    from rmsh.data.benchmarks.base import Benchmark
    from rmsh.data.open import Opened

CODE_LENGTHS = (16, 32, 64, 128)
BLOCK = 2048  # distinct label sets compared at a time


@dataclass(frozen=True)
class DataCard:
    """What a data set holds.

    Args:
        name: of the data set.
        counts: items, those with an image, a text, a label; and the parts of the split.
        classes: how many classes there are.
        labels_per_item: mean number of labels of the items that have some.
        labels_histogram: how many items have 0, 1, 2, ... labels.
        frequencies: class -> the share of all items that has it.
        entropy: H(L) in bits of the items with labels, "independent" (the paper's form) and "joint".
        dissimilar: the share of all pairs of different items that have no label in common.
        chance: what a random ranking scores for the queries of the split, by metric; empty without a split.
        delta: the bounds of delta and the choice, for some code lengths, from the training labels.
    """

    name: str
    counts: Mapping[str, int]
    classes: int
    labels_per_item: float
    labels_histogram: Sequence[int]
    frequencies: Mapping[str, float]
    entropy: Mapping[str, float]
    dissimilar: float
    chance: Mapping[str, float]
    delta: tuple[DeltaChoice, ...]

    def to_json(self) -> dict[str, Any]:
        """The card as plain values."""
        return asdict(self) | {"delta": [choice.to_json() for choice in self.delta]}


def make_card(opened: Opened, *, bits: Sequence[int] = CODE_LENGTHS) -> DataCard:
    """Work out the card of some data.

    Raises:
        DataError: the data has no labels.

    Example:
        >>> from rmsh.data.open import open_pairs
        >>> card = make_card(open_pairs("generated:200"), bits=[16])
        >>> card.classes, card.counts["query"], 0 < card.dissimilar < 1, sorted(card.chance)
        (12, 20, True, ['NDCG@500', 'P@500', 'mAP@all'])
    """
    pairs, split = opened.pairs, opened.split
    if pairs.labels is None:
        raise DataError(f"{opened.name} has no labels; the figures of a card follow from labels.")
    statistics = LabelStatistics.of(pairs.labels)
    training = statistics if split is None else LabelStatistics.of(pairs.labels[split.train])
    having = {
        "with image": pairs.has_image,
        "with text": pairs.has_text,
        "labelled": pairs.labelled,
    }
    parts = {} if split is None else {part: len(getattr(split, part)) for part in ("database", "query", "train")}
    return DataCard(
        name=opened.name,
        counts={"items": len(pairs)} | {name: int(rows.sum()) for name, rows in having.items()} | parts,
        classes=statistics.classes,
        labels_per_item=statistics.labels_per_item,
        labels_histogram=np.bincount(pairs.labels.sum(axis=1, dtype=np.int64)).tolist(),
        frequencies=dict(zip(pairs.class_names, class_frequency(pairs.labels).tolist(), strict=True)),
        entropy={form: statistics.entropy(form) for form in ("independent", "joint")},
        dissimilar=dissimilar_share(pairs.labels),
        chance={} if split is None else _chance(pairs.labels[split.query], pairs.labels[split.database]),
        delta=tuple(choose_delta(training, length) for length in bits),
    )


def dissimilar_share(labels: LabelArray) -> float:
    """The share of all pairs of different items without a common label: exact, over the distinct label sets.

    Example:
        >>> dissimilar_share(np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=np.uint8))
        0.6666666666666666
    """
    n = len(labels)
    sets, counts = np.unique(labels, axis=0, return_counts=True)
    sets, strangers = sets.astype(np.float32), 0
    for start in range(0, len(sets), BLOCK):
        apart = sets[start : start + BLOCK] @ sets.T == 0
        strangers += int(counts[start : start + BLOCK] @ (apart @ counts))
    strangers -= int((~labels.any(axis=1)).sum())  # an item without labels has none in common with itself
    return strangers / (n * (n - 1)) if n > 1 else 0.0


def _chance(query: LabelArray, database: LabelArray) -> dict[str, float]:
    """What codes score that are all the same: exactly the expectation of a random ranking."""
    scores = evaluate(_one_code(len(query)), _one_code(len(database)), query, database)
    names = scores.definitions.names()
    return {names[metric]: getattr(scores, metric).chance for metric in ("ndcg", "map", "precision")}


def _one_code(n: int) -> Codes:
    rows: IntArray = np.ones((n, 1), dtype=np.int64)
    return Codes.from_values(rows)


SHOWN = 5  # classes named at either end


def declared_sentences(benchmark: Benchmark) -> list[str]:
    """What is known of a benchmark before its files are read; what the paper leaves open among it."""
    return [
        benchmark.title,
        f"published: {benchmark.published}",
        f"licence: {benchmark.licence}",
        f"cite: {benchmark.citation}",
        f"files: {benchmark.layout}",
        *(f"split {protocol.name}: {protocol.about}" for protocol in benchmark.protocols),
        *(f"open: {point}" for point in benchmark.open_points),
    ]


def _shares(classes: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in classes)


def card_sentences(card: DataCard) -> list[str]:
    """The figures of a card, one subject a line."""
    common = sorted(card.frequencies.items(), key=lambda pair: -pair[1])
    chance = ", ".join(f"{name} {value:.4f}" for name, value in card.chance.items())
    return [
        f"{card.name}: " + ", ".join(f"{count:,} {what}" for what, count in card.counts.items()),
        f"{card.classes} classes, {card.labels_per_item:.2f} labels an item, at most {len(card.labels_histogram) - 1}",
        f"most frequent: {_shares(common[:SHOWN])}; rarest: {_shares(common[-SHOWN:])}",
        f"H(L) = {card.entropy['independent']:.2f} bits with independent classes, {card.entropy['joint']:.2f} jointly",
        f"{card.dissimilar:.1%} of all pairs of items have no label in common",
        f"a random ranking scores {chance}" if chance else "no split, so no chance levels",
        *(f"{choice.bits} bits: delta {choice.delta}, {choice.reason}" for choice in card.delta),
    ]
