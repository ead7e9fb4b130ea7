"""The results of some data in a few sentences, for the top of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmsh.reporting.lineup import Entry, Lineup
from rmsh.reporting.names import DIRECTION_TITLES
from rmsh.reporting.outcomes import DIRECTIONS, NDCG, done, mean_score

if TYPE_CHECKING:
    from rmsh.reporting.claims import Claim

__all__ = ["headline"]


def headline(lineup: Lineup, claims: Sequence[Claim]) -> str:
    """How good RMSH is beside the best other method and chance, and how many claims hold."""
    return " ".join([*_scores(lineup), _count(claims)])


def _scores(lineup: Lineup) -> list[str]:
    """A sentence for the length that has the most runs, where RMSH is among them."""
    bits = lineup.usual_bits if lineup.bits else 0
    rmsh = done(lineup.cell(Entry("rmsh"), bits))
    if not bits or not rmsh:
        return []
    ours = " / ".join(f"{mean_score(rmsh, direction):.4f}" for direction in DIRECTIONS)
    chance = " / ".join(f"{rmsh[0].chance(direction):.4f}" for direction in DIRECTIONS)
    others = [_best_other(lineup, bits, direction) for direction in DIRECTIONS]
    known = [words for words in others if words]
    rest = f"; the best of the other seven: {', '.join(known)}" if known else ""
    titles = " / ".join(DIRECTION_TITLES.values())
    return [f"RMSH at {bits} bits scores {ours} NDCG@500 ({titles}), a random ranking {chance}{rest}."]


def _best_other(lineup: Lineup, bits: int, direction: str) -> str:
    ranked = [entry for entry in lineup.ranked(bits, direction, metric=NDCG) if entry != Entry("rmsh")]
    if not ranked:
        return ""
    return f"{ranked[0].title} {mean_score(done(lineup.cell(ranked[0], bits)), direction):.4f}"


def _count(claims: Sequence[Claim]) -> str:
    """How many claims have which verdict.

    Example:
        >>> from rmsh.reporting.claims import Claim
        >>> _count([Claim("a", "holds", ""), Claim("b", "not run", ""), Claim("c", "holds", "")])
        'Of 3 claims of the paper 2 hold, 0 hold in part, 0 do not hold; 1 could not be looked at.'
    """
    found = Counter(claim.verdict for claim in claims)
    return (
        f"Of {len(claims)} claims of the paper {found['holds']} hold, {found['holds in part']} hold in part, "
        f"{found['does not hold']} do not hold; {found['not run']} could not be looked at."
    )
