"""The results of some data in a few sentences, for the top of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lab.paper.claims.claim import VERDICTS
from lab.paper.lineup import Entry, Lineup
from lab.paper.names import COMPARED, DIRECTION_TITLES
from lab.paper.outcomes import DIRECTIONS, done, mean_score

if TYPE_CHECKING:
    from lab.paper.claims.claim import Claim

__all__ = ["headline"]


def headline(lineup: Lineup, claims: Sequence[Claim]) -> str:
    """How good RMSH is beside other methods, rankings without codes and chance, and how many claims hold."""
    return " ".join([*_scores(lineup), _count(claims)])


def _scores(lineup: Lineup) -> list[str]:
    """Sentences for the length that has the most runs, where RMSH is among them."""
    bits = lineup.usual_bits if lineup.bits else 0
    rmsh = done(lineup.cell(Entry("rmsh"), bits))
    if not bits or not rmsh:
        return []
    scored = [entry for entry in lineup.runs if not entry.preset and done(lineup.cell(entry, bits))]
    seven = [entry for entry in scored if entry.method in COMPARED and entry != Entry("rmsh")]
    beyond = [entry for entry in scored if entry.method not in COMPARED]
    ours = " / ".join(f"{mean_score(rmsh, direction):.4f}" for direction in DIRECTIONS)
    chance = " / ".join(f"{rmsh[0].chance(direction):.4f}" for direction in DIRECTIONS)
    titles = " / ".join(DIRECTION_TITLES.values())
    count = "the other seven" if len(seven) == len(COMPARED) - 1 else f"the {len(seven)} of the other seven that ran"
    return [
        f"RMSH at {bits} bits scores {ours} NDCG@500 ({titles}), a random ranking {chance}.",
        *_best(lineup, seven, bits, words=f"The best of {count}"),
        *_best(lineup, (e for e in beyond if not lineup.is_reference(e)), bits, words="The best beyond the eight"),
        *_best(lineup, filter(lineup.is_reference, beyond), bits, words="The best ranking by real numbers"),
    ]


def _best(lineup: Lineup, entries: Iterable[Entry], bits: int, *, words: str) -> list[str]:
    """A sentence about the best of some entries in each direction, none where there are none."""
    groups = {entry: done(lineup.cell(entry, bits)) for entry in entries}
    found = []
    for direction in DIRECTIONS if groups else ():
        means = {entry.title: mean_score(group, direction) for entry, group in groups.items()}
        title = max(means, key=means.__getitem__)
        name = title.removeprefix("no codes: ")
        found.append(f"{name} {means[title]:.4f} ({DIRECTION_TITLES[direction]})")
    return [f"{words}: {', '.join(found)}."] if found else []


def _count(claims: Sequence[Claim]) -> str:
    """How many claims have which verdict.

    Example:
        >>> from lab.paper.claims.claim import Claim
        >>> _count([Claim("a", "holds", ""), Claim("b", "open", ""), Claim("c", "holds", "")])
        'Of 3 claims of the paper: holds 2, open 1.'
    """
    found = Counter(claim.verdict for claim in claims)
    counts = (f"{verdict} {found[verdict]}" for verdict in VERDICTS if found[verdict])
    return f"Of {len(claims)} claims of the paper: {', '.join(counts)}."
