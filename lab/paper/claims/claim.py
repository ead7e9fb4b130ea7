"""A claim of the paper as a value, and the words for how much of it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lab.paper.names import DIRECTION_TITLES

__all__ = ["VERDICTS", "Claim", "Verdict", "more", "open_claim", "place", "verdict"]

Verdict: TypeAlias = Literal["holds", "holds so far", "holds in part", "does not hold", "open"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds so far", "holds in part", "does not hold", "open")


@dataclass(frozen=True)
class Claim:
    """One claim of the paper and what became of it.

    Args:
        statement: what the paper says.
        verdict: in a few words.
        summary: the numbers, in a sentence.
        details: what does not agree or is not there, a sentence each.
    """

    statement: str
    verdict: Verdict
    summary: str
    details: tuple[str, ...] = ()


def verdict(agree: int, asked: int, *, waiting: int = 0) -> Verdict:
    """In words how much agrees.

    Args:
        agree: comparisons that are as the paper says.
        asked: comparisons that could be made.
        waiting: those whose runs are not there; a claim never holds before they are.

    Example:
        >>> verdict(3, 3), verdict(3, 3, waiting=1), verdict(1, 3), verdict(0, 3), verdict(0, 0, waiting=2)
        ('holds', 'holds so far', 'holds in part', 'does not hold', 'open')
    """
    if not asked:
        return "open"
    if agree == asked:
        return "holds so far" if waiting else "holds"
    return "holds in part" if agree else "does not hold"


def open_claim(statement: str, details: Sequence[str] = ()) -> Claim:
    """A claim that nothing can be said about."""
    return Claim(statement, "open", "Runs that decide this are not there.", tuple(details))


def more(waiting: int, what: str) -> str:
    """What cannot be said yet, as the end of a sentence.

    Example:
        >>> more(0, "deltas"), more(3, "deltas")
        ('.', '; 3 more deltas are open.')
    """
    return f"; {waiting} more {what} are open." if waiting else "."


def place(direction: str, bits: int) -> str:
    """Where a comparison is made.

    Example:
        >>> place("i2t", 64)
        'I → T, 64 bits'
    """
    return f"{DIRECTION_TITLES[direction]}, {bits} bits"
