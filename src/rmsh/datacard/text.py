"""A data card in words: what is declared of a benchmark, and the figures of a card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsh.data.benchmarks import Benchmark
    from rmsh.datacard.card import DataCard

__all__ = ["card_sentences", "declared_sentences"]

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
