"""What follows from the number of pairs where the user leaves it open: few make few steps, and are known by heart."""

from __future__ import annotations

import math

__all__ = ["enough_epochs", "fitting_batch", "fitting_dropout"]

_LEAST_STEPS = 800


def fitting_batch(items: int, given: int | None) -> int:
    """Items a step: 256, fewer where items are few, and what the user gave; never more than there are.

    Example:
        >>> fitting_batch(50_000, None), fitting_batch(1600, None), fitting_batch(20, None), fitting_batch(20, 128)
        (256, 100, 20, 20)
    """
    return min(given or min(256, max(32, items // 16)), items)


def enough_epochs(items: int, batch: int, *, usual: int) -> int:
    """Passes over the items: as usual, more where they would make too few steps to learn from.

    Example:
        >>> enough_epochs(50_000, 256, usual=10), enough_epochs(1600, 100, usual=10)
        (10, 50)
    """
    return max(usual, -(-_LEAST_STEPS // (items // batch)))


def fitting_dropout(items: int) -> float:
    """The share of a hidden layer that is dropped: a tenth, more where items are few and soon known by heart.

    Example:
        >>> [round(fitting_dropout(items), 2) for items in (500, 2000, 10_000, 50_000, 1_000_000)]
        [0.7, 0.69, 0.26, 0.1, 0.1]
    """
    return min(0.7, max(0.1, 0.1 * math.pow(50_000 / items, 0.6)))
