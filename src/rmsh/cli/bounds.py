"""Compute bounds on the minimum distance delta from labels.

A delta is chosen for each code length. DATA is a file or folder with labels, or a known data set. If it has a split,
its training items are used.

Example:
    rmsh bounds mirflickr25k-lall.mat --bits 16,32,64,128
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from rmsh.cli.console import Console, listed_numbers, table
from rmsh.codes import check_bits
from rmsh.coding.bounds import choose_delta
from rmsh.coding.entropy import LabelStatistics
from rmsh.core.errors import DataError
from rmsh.data.open import open_pairs


def bounds(
    console: Console,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Data; only its labels are read.")],
    bits: Annotated[
        list[str] | None, typer.Option("--bits", "-b", metavar="N,N,...", help="Code lengths (default: 16,32,64,128).")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence p of the lower bound, between 0.5 and 1.")] = 0.9,
) -> None:
    lengths = code_lengths(bits or []) or [16, 32, 64, 128]
    opened = open_pairs(data, skip=("images", "texts"))
    console.note(*opened.notes)
    labels = opened.pairs.labels
    if labels is None:
        raise DataError(f"{opened.name} has no labels, and the bounds need them; give data with labels.")
    if opened.split is not None:
        console.note(f"Using the {len(opened.split.train):,} training items of the split.")
        labels = labels[opened.split.train]
    statistics = LabelStatistics.of(labels)
    choices = [choose_delta(statistics, length, confidence=confidence) for length in lengths]
    rows = [
        [
            choice.bits,
            f"{choice.paper.lower:.2f}",
            choice.paper.upper or "none",
            "yes" if choice.paper.feasible else "no",
            choice.delta if choice.feasible else f"{choice.delta}, infeasible",
        ]
        for choice in choices
    ]
    counts = {name: getattr(statistics, name) for name in ("items", "without_labels", "classes", "labels_per_item")}
    entropy = {form: statistics.entropy(form) for form in ("independent", "joint")}
    title = f"Bounds of the paper at confidence {confidence:g}, and the delta chosen"
    console.result(
        counts | {"entropy": entropy, "confidence": confidence, "choices": [choice.to_json() for choice in choices]},
        f"{statistics.items:,} items with labels, {statistics.without_labels:,} without; {statistics.classes} classes, "
        f"{statistics.labels_per_item:.2f} labels per item",
        f"H(L) = {entropy['independent']:.2f} bits with independent classes (the paper's form), "
        f"{entropy['joint']:.2f} jointly (biased low)",
        table(title, ["bits", "lower", "upper", "feasible", "delta"], rows),
        *(f"{choice.bits} bits, delta {choice.delta}: {choice.reason}" for choice in choices),
    )


def code_lengths(words: Sequence[str]) -> list[int]:
    """Sorted, distinct code lengths."""
    return sorted({check_bits(length) for length in listed_numbers(words, "--bits")})
