"""An audit of anybody's codes: bits that say nothing, codes that coincide, and scores beside chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes, unpack
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, ScoreArray
    from rmsh.metrics.evaluate import Scores
    from rmsh.metrics.relevance import LabelledCodes

__all__ = ["NEARLY_CONSTANT", "Audit", "BitAudit", "audit_bits", "audit_codes"]

NEARLY_CONSTANT = 0.98  # a bit with the same value on more of the items than this
_ROWS = 1 << 16  # at a time: bits become float32, and sums of so many ones are exact in it


@dataclass(frozen=True, eq=False)
class BitAudit:
    """What a set of codes is like, without labels.

    Args:
        items: how many codes.
        bits: their length.
        ones: (bits,) share of items where a bit is 1; one half is balanced.
        dead: bits with the same value on all items.
        nearly_constant: other bits with the same value on more than 98 % of the items.
        duplicates: pairs of other bits that are equal, or opposite, on all items.
        mean_correlation: mean absolute correlation of two bits that are not dead; None where there are not two.
        distinct: how many different codes.
        largest_bucket: how many items share the most frequent code.
    """

    items: int
    bits: int
    ones: ScoreArray
    dead: tuple[int, ...]
    nearly_constant: tuple[int, ...]
    duplicates: tuple[tuple[int, int], ...]
    mean_correlation: float | None
    distinct: int
    largest_bucket: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self)) | {"ones": self.ones.tolist(), "duplicates": [list(pair) for pair in self.duplicates]}


@dataclass(frozen=True, eq=False)
class Audit:
    """The codes of both sides, and how well one finds the other."""

    query: BitAudit
    database: BitAudit
    scores: Scores

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"query": self.query.to_json(), "database": self.database.to_json(), "scores": self.scores.to_json()}


def audit_codes(query: LabelledCodes, database: LabelledCodes, **options: Any) -> Audit:
    """Look at the bits of both sides and score the queries; options are those of :func:`rmsh.metrics.evaluate`."""
    scores = evaluate(query.codes, database.codes, query.labels, database.labels, **options)
    return Audit(audit_bits(query.codes), audit_bits(database.codes), scores)


def audit_bits(codes: Codes) -> BitAudit:
    """Look at the bits of some codes.

    Example:
        >>> found = audit_bits(Codes.from_values([[1, 1, -1], [1, -1, 1], [1, 1, -1]]))
        >>> found.dead, found.duplicates, found.distinct, found.largest_bucket
        ((0,), ((1, 2),), 2, 2)
    """
    together = _agreement(codes)
    ones = (np.diag(together) / max(len(codes), 1)).astype(np.float64)
    dead = np.flatnonzero((ones == 0) | (ones == 1))
    nearly = np.flatnonzero(np.maximum(ones, 1 - ones) > NEARLY_CONSTANT)
    correlation = _correlation(together, np.setdiff1d(np.arange(codes.bits), dead), len(codes))
    _, counts = np.unique(codes.packed, axis=0, return_counts=True)
    return BitAudit(
        items=len(codes),
        bits=codes.bits,
        ones=ones,
        dead=tuple(dead.tolist()),
        nearly_constant=tuple(np.setdiff1d(nearly, dead).tolist()),
        duplicates=_duplicates(together, np.setdiff1d(np.arange(codes.bits), dead), len(codes)),
        mean_correlation=correlation,
        distinct=len(counts),
        largest_bucket=int(counts.max(initial=0)),
    )


def _agreement(codes: Codes) -> IntArray:
    """How many items have both bits set, int64 (bits, bits); the diagonal counts the ones of a bit."""
    together = np.zeros((codes.bits, codes.bits), dtype=np.int64)
    for start in range(0, len(codes), _ROWS):
        ones = unpack(codes.packed[start : start + _ROWS], codes.bits).astype(np.float32)
        together += (ones.T @ ones).astype(np.int64)
    return together


def _correlation(together: IntArray, live: IntArray, items: int) -> float | None:
    if len(live) < 2:
        return None
    share = together[np.ix_(live, live)] / items
    ones = np.diag(share)
    spread = np.sqrt(ones * (1 - ones))
    correlation = (share - np.outer(ones, ones)) / np.outer(spread, spread)
    return float(np.abs(correlation[np.triu_indices(len(live), 1)]).mean())


def _duplicates(together: IntArray, live: IntArray, items: int) -> tuple[tuple[int, int], ...]:
    ones = np.diag(together)
    differ = ones[:, None] + ones[None, :] - 2 * together  # items on which two bits are not equal
    same = np.triu((differ == 0) | (differ == items), 1)
    pairs = np.argwhere(same[np.ix_(live, live)])
    return tuple((int(live[a]), int(live[b])) for a, b in pairs)
