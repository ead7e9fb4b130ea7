"""Claims about all methods: which is the best, and in which order they come."""

from __future__ import annotations

from statistics import fmean

from scipy import stats

from lab.paper.claims.claim import Claim, Verdict, more, open_claim, place, verdict
from lab.paper.lineup import Entry, Lineup
from lab.paper.names import COMPARED
from lab.paper.outcomes import DIRECTIONS, NDCG, done, mean_score
from lab.paper.published import paper_score
from lab.paper.significance import compare

__all__ = ["check_best", "check_order"]

RMSH = Entry("rmsh")


def check_best(lineup: Lineup, metric: str, statement: str) -> Claim:
    """Where RMSH is first of all eight, and who is before it elsewhere.

    One method before RMSH decides a comparison; that RMSH is the best is not said before all eight have scores.
    """
    first = asked = sure = waiting = 0
    details: list[str] = []
    for direction, bits in _places(lineup):
        ranked = lineup.ranked(bits, direction, metric=metric)
        if RMSH in ranked and ranked[0] != RMSH:
            asked += 1
            details.append(_before(lineup, ranked, direction, bits=bits, metric=metric))
        elif len(ranked) < len(COMPARED):
            waiting += 1
            details += [_first_of_some(ranked, direction, bits)] if len(ranked) > 1 and RMSH in ranked else []
        else:
            asked, first = asked + 1, first + 1
            ours, theirs = (done(lineup.cell(entry, bits)) for entry in ranked[:2])
            test = compare(ours, theirs, direction)
            sure += bool(metric == NDCG and test and test.significant)
    if not asked:
        return open_claim(statement, details)
    words = f"RMSH is first in {first} of {asked} comparisons over code lengths and directions"
    words += f", in {sure} of them significantly" if metric == NDCG else ""
    return Claim(
        statement, verdict(first, asked, waiting=waiting), words + more(waiting, "comparisons"), tuple(details)
    )


def _places(lineup: Lineup) -> list[tuple[str, int]]:
    """The directions and lengths at which one of the eight is run or is to be."""
    lengths = [bits for bits in lineup.bits if any(lineup.cell(Entry(name), bits) for name in COMPARED)]
    return [(direction, bits) for direction in DIRECTIONS for bits in lengths]


def _before(lineup: Lineup, ranked: list[Entry], direction: str, *, bits: int, metric: str) -> str:
    ours, theirs = (done(lineup.cell(entry, bits)) for entry in (RMSH, ranked[0]))
    test = compare(ours, theirs, direction) if metric == NDCG else None
    return (
        f"{place(direction, bits)}: {ranked[0].title} {mean_score(theirs, direction, metric):.4f} is before RMSH "
        f"{mean_score(ours, direction, metric):.4f}, which is number {ranked.index(RMSH) + 1} of {len(ranked)}"
        + (f" ({test})." if test else ".")
    )


def _first_of_some(ranked: list[Entry], direction: str, bits: int) -> str:
    missing = ", ".join(Entry(name).title for name in COMPARED if Entry(name) not in ranked)
    return f"{place(direction, bits)}: RMSH is first of the {len(ranked)} that have scores; not there: {missing}."


def check_order(lineup: Lineup) -> Claim:
    """Whether the methods come in the paper's order, by Spearman's rank correlation; judged where all eight ran."""
    statement = "The eight methods come in the paper's order."
    found = {where: _in_order(lineup, *where) for where in _places(lineup)}
    values = [value for value, count in found.values() if value is not None and count == len(COMPARED)]
    details = [
        f"{place(*where)}: {value:.2f} over {count} methods"
        for where, (value, count) in found.items()
        if value is not None
    ]
    if not values:
        return open_claim(statement, details)
    summary = (
        f"The rank correlation (Spearman) with the paper's table is {fmean(values):.2f} on average, "
        f"from {min(values):.2f} to {max(values):.2f}"
    )
    waiting = len(found) - len(values)
    return Claim(statement, _order_verdict(values, waiting), summary + more(waiting, "comparisons"), tuple(details))


def _in_order(lineup: Lineup, direction: str, bits: int) -> tuple[float | None, int]:
    """The rank correlation of our scores and the paper's, None where it has fewer than three; and of how many."""
    pairs = [
        (mean_score(done(lineup.cell(e, bits)), direction), paper)
        for e in lineup.ranked(bits, direction, metric=NDCG)
        if (paper := paper_score(1, lineup.dataset, direction=direction, method=e.title, bits=bits)) is not None
    ]
    if len(pairs) < 3:
        return None, len(pairs)
    return float(stats.spearmanr(*zip(*pairs, strict=True)).statistic), len(pairs)


def _order_verdict(values: list[float], waiting: int) -> Verdict:
    same = sum(value > 0.999 for value in values)
    if same == len(values):
        return verdict(same, len(values), waiting=waiting)
    return "holds in part" if fmean(values) >= 0.5 else "does not hold"
