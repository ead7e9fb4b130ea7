"""An audit of any codes: bits without information, equal codes, and scores next to chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes, unpack
from rmsh.core.types import IntArray, ScoreArray
from rmsh.metrics.evaluate import Scores, evaluate

if TYPE_CHECKING:
    from rmsh.metrics.histogram import LabelledCodes

NEARLY_CONSTANT = 0.98  # a bit with the same value on a larger share of the items than this
_ROWS = 1 << 16  # per block: float32 sums of this many ones are exact


@dataclass(frozen=True, eq=False)
class BitAudit:
    """Properties of a set of codes that do not need labels."""

    items: int
    bits: int
    ones: ScoreArray  # (bits,) share of items where a bit is 1; one half is balanced
    dead: tuple[int, ...]  # bits with the same value on all items
    nearly_constant: tuple[int, ...]  # other bits with the same value on more than 98 % of the items
    duplicates: tuple[tuple[int, int], ...]  # pairs of bits, not dead, that are equal or opposite on all items
    mean_correlation: float | None  # mean absolute correlation of two bits, dead ones excluded; None for fewer than two
    distinct: int  # different codes
    largest_bucket: int  # items that share the most frequent code

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self)) | {"ones": self.ones.tolist(), "duplicates": [list(pair) for pair in self.duplicates]}


@dataclass(frozen=True, eq=False)
class Audit:
    """The bits of queries and database, and the retrieval scores."""

    query: BitAudit
    database: BitAudit
    scores: Scores

    def to_json(self) -> dict[str, Any]:
        return {"query": self.query.to_json(), "database": self.database.to_json(), "scores": self.scores.to_json()}


def audit_codes(query: LabelledCodes, database: LabelledCodes, **options: Any) -> Audit:
    """Audit the bits of both sides and score the queries; options are those of :func:`rmsh.metrics.evaluate`."""
    scores = evaluate(query.codes, database.codes, query.labels, database.labels, **options)
    return Audit(audit_bits(query.codes), audit_bits(database.codes), scores)


def audit_bits(codes: Codes) -> BitAudit:
    """Find dead, nearly constant and duplicate bits, and count equal codes.

    Example:
        >>> found = audit_bits(Codes.from_values([[1, 1, -1], [1, -1, 1], [1, 1, -1]]))
        >>> found.dead, found.duplicates, found.distinct, found.largest_bucket
        ((0,), ((1, 2),), 2, 2)
    """
    n, together = len(codes), _both_ones(codes)
    counts = np.diag(together)
    ones = counts / max(n, 1)
    constant = (ones == 0) | (ones == 1)
    nearly = (np.maximum(ones, 1 - ones) > NEARLY_CONSTANT) & ~constant
    differ = counts[:, None] + counts - 2 * together  # items on which two bits differ
    live = np.triu(np.outer(~constant, ~constant), 1)  # pairs of different bits, neither of them dead
    spread = np.sqrt(ones * (1 - ones))
    correlation = (together / max(n, 1) - np.outer(ones, ones))[live] / np.outer(spread, spread)[live]
    _, sizes = np.unique(codes.packed, axis=0, return_counts=True)
    return BitAudit(
        items=n,
        bits=codes.bits,
        ones=ones,
        dead=tuple(np.flatnonzero(constant).tolist()),
        nearly_constant=tuple(np.flatnonzero(nearly).tolist()),
        duplicates=tuple((int(a), int(b)) for a, b in np.argwhere(live & ((differ == 0) | (differ == n)))),
        mean_correlation=float(np.abs(correlation).mean()) if correlation.size else None,
        distinct=len(sizes),
        largest_bucket=int(sizes.max(initial=0)),
    )


def _both_ones(codes: Codes) -> IntArray:
    """The number of items that have both bits set, int64 (bits, bits); the diagonal counts the ones of each bit."""
    together = np.zeros((codes.bits, codes.bits), dtype=np.int64)
    for start in range(0, len(codes), _ROWS):
        ones = unpack(codes.packed[start : start + _ROWS], codes.bits).astype(np.float32)
        together += (ones.T @ ones).astype(np.int64)
    return together
