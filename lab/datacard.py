"""Data cards: the statistics of a data set with labels, as values and as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from rmsh.codes import Codes
from rmsh.coding.entropy import LabelStatistics
from rmsh.core.errors import DataError
from rmsh.data.labels import class_frequency
from rmsh.data.open import open_pairs
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray
    from rmsh.data.open import Opened

BLOCK = 2048  # distinct label sets compared at a time
SHOWN = 5  # classes named at either end


def main(data: Annotated[str, typer.Argument(metavar="DATA", help="Data with labels, as for `rmsh train`.")]) -> None:
    """Print the card of a data set: counts, labels, entropy, dissimilar pairs, chance levels."""
    opened = open_pairs(data)
    print("\n".join([*opened.notes, *card_sentences(make_card(opened))]))


@dataclass(frozen=True)
class DataCard:
    """The statistics of a data set."""

    name: str
    counts: Mapping[str, int]  # all items, those with an image, a text or a label, and the parts of the split
    classes: int  # number of classes
    labels_per_item: float  # mean number of labels of the labelled items
    labels_histogram: Sequence[int]  # number of items with 0, 1, 2, ... labels
    frequencies: Mapping[str, float]  # class -> its share of all items
    entropy: Mapping[str, float]  # H(L) in bits of the labelled items, "independent" (the paper's form) and "joint"
    dissimilar: float  # share of the pairs of different items without a common label
    chance: Mapping[str, float]  # score of a random ranking for the split's queries, by metric; empty without a split


def make_card(opened: Opened) -> DataCard:
    """Compute the card of opened data, which must have labels."""
    pairs, split = opened.pairs, opened.split
    if pairs.labels is None:
        raise DataError(f"{opened.name} has no labels, which a data card needs; give data with labels.")
    statistics = LabelStatistics.of(pairs.labels)
    masks = {"with image": pairs.has_image, "with text": pairs.has_text, "labelled": pairs.labelled}
    parts = {} if split is None else {part: len(getattr(split, part)) for part in ("database", "query", "train")}
    return DataCard(
        name=opened.name,
        counts={"items": len(pairs)} | {name: int(rows.sum()) for name, rows in masks.items()} | parts,
        classes=statistics.classes,
        labels_per_item=statistics.labels_per_item,
        labels_histogram=np.bincount(pairs.labels.sum(axis=1, dtype=np.int64)).tolist(),
        frequencies=dict(zip(pairs.class_names, class_frequency(pairs.labels).tolist(), strict=True)),
        entropy={form: statistics.entropy(form) for form in ("independent", "joint")},
        dissimilar=dissimilar_share(pairs.labels),
        chance={} if split is None else _chance(pairs.labels[split.query], pairs.labels[split.database]),
    )


def dissimilar_share(labels: LabelArray) -> float:
    """The exact share of pairs of different items without a common label, computed over distinct label sets."""
    n = len(labels)
    sets, counts = np.unique(labels, axis=0, return_counts=True)
    sets, disjoint = sets.astype(np.float32), 0
    for start in range(0, len(sets), BLOCK):
        apart = sets[start : start + BLOCK] @ sets.T == 0
        disjoint += int(counts[start : start + BLOCK] @ (apart @ counts))
    disjoint -= int((~labels.any(axis=1)).sum())  # an unlabelled item shares no label with itself
    return disjoint / (n * (n - 1)) if n > 1 else 0.0


def _chance(query: LabelArray, database: LabelArray) -> dict[str, float]:
    """The expected scores of a random ranking, which are those of equal codes."""
    codes = [Codes.from_values(np.ones((len(labels), 1), dtype=np.int64)) for labels in (query, database)]
    scores = evaluate(codes[0], codes[1], query, database)
    names = scores.definitions.names()
    return {names[metric]: getattr(scores, metric).chance for metric in ("ndcg", "map", "precision")}


def card_sentences(card: DataCard) -> list[str]:
    """The statistics of a card, one subject per line."""
    common = [f"{n} {share:.1%}" for n, share in sorted(card.frequencies.items(), key=lambda pair: -pair[1])]
    chance = ", ".join(f"{name} {value:.4f}" for name, value in card.chance.items())
    return [
        f"{card.name}: " + ", ".join(f"{count:,} {what}" for what, count in card.counts.items()),
        f"{card.classes} classes, {card.labels_per_item:.2f} labels per item, at most {len(card.labels_histogram) - 1}",
        f"most frequent: {', '.join(common[:SHOWN])}; rarest: {', '.join(common[-SHOWN:])}",
        f"H(L) = {card.entropy['independent']:.2f} bits with independent classes, {card.entropy['joint']:.2f} jointly",
        f"{card.dissimilar:.1%} of all pairs of items have no label in common",
        f"a random ranking scores {chance}" if chance else "no split, so no chance levels",
    ]
