"""The paper's claims against the results: which hold, by which numbers, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeAlias

from scipy import stats

from rmsh.reporting.lineup import ABLATIONS, Entry, Lineup, line_up, line_up_ablation
from rmsh.reporting.names import DIRECTION_TITLES
from rmsh.reporting.outcomes import DIRECTIONS, MAP, NDCG, Outcome, Sweep, done, mean_score
from rmsh.reporting.published import paper_score
from rmsh.reporting.significance import compare
from rmsh.reporting.studies import WEIGHTS, bounds_of, delta_sweep, weight_sweeps

__all__ = ["Claim", "Verdict", "check_claims"]

Verdict: TypeAlias = Literal["holds", "holds in part", "does not hold", "not run"]
RMSH = Entry("rmsh")


@dataclass(frozen=True)
class Claim:
    """One claim of the paper and what became of it.

    Args:
        statement: what the paper says.
        verdict: in two words.
        summary: the numbers, in a sentence.
        details: what does not agree, a sentence each.
    """

    statement: str
    verdict: Verdict
    summary: str
    details: tuple[str, ...] = ()


def check_claims(outcomes: Sequence[Outcome], dataset: str) -> list[Claim]:
    """All claims, in the order of the paper; a claim without its runs is "not run"."""
    lineup = line_up(outcomes, dataset)
    return [
        _best(lineup, NDCG, "RMSH is the best of the eight methods (NDCG@500)."),
        _best(lineup, MAP, "Precision and recall agree with NDCG: RMSH is the best by mAP as well."),
        _order(lineup),
        _delta(outcomes, dataset),
        _ablation(outcomes, dataset),
        _weights(outcomes, dataset),
    ]


def _verdict(agree: int, asked: int) -> Verdict:
    """In words how much agrees.

    Example:
        >>> _verdict(3, 3), _verdict(1, 3), _verdict(0, 3), _verdict(0, 0)
        ('holds', 'holds in part', 'does not hold', 'not run')
    """
    if not asked:
        return "not run"
    return "holds" if agree == asked else "holds in part" if agree else "does not hold"


def _place(direction: str, bits: int) -> str:
    return f"{DIRECTION_TITLES[direction]}, {bits} bits"


def _best(lineup: Lineup, metric: str, statement: str) -> Claim:
    """Where RMSH is first, and who is before it elsewhere; only places with another method to compare with count."""
    first = asked = sure = 0
    details: list[str] = []
    for direction, bits in ((d, b) for d in DIRECTIONS for b in lineup.bits):
        ranked = lineup.ranked(bits, direction, metric=metric)
        if RMSH not in ranked or len(ranked) < 2:
            continue
        asked += 1
        other = ranked[1] if ranked[0] == RMSH else ranked[0]
        ours, theirs = (done(lineup.cell(entry, bits)) for entry in (RMSH, other))
        test = compare(ours, theirs, direction) if metric == NDCG else None
        if ranked[0] == RMSH:
            first += 1
            sure += bool(test and test.significant)
        else:
            details.append(
                f"{_place(direction, bits)}: {other.title} {mean_score(theirs, direction, metric):.4f} is before RMSH "
                f"{mean_score(ours, direction, metric):.4f}, which is number {ranked.index(RMSH) + 1}"
                + (f" ({test})." if test else ".")
            )
    words = f"RMSH is first in {first} of {asked} comparisons over code lengths and directions"
    words += f", in {sure} of them significantly." if metric == NDCG else "."
    return Claim(statement, _verdict(first, asked), words if asked else _missing(), tuple(details))


def _missing() -> str:
    return "The runs for this are not there."


def _order(lineup: Lineup) -> Claim:
    """Whether the methods come in the paper's order, by Spearman's rank correlation."""
    statement = "The eight methods come in the paper's order."
    found: dict[str, float] = {}
    for direction, bits in ((d, b) for d in DIRECTIONS for b in lineup.bits):
        pairs = [
            (mean_score(done(lineup.cell(e, bits)), direction), paper)
            for e in lineup.ranked(bits, direction, metric=NDCG)
            if (paper := paper_score(1, lineup.dataset, direction=direction, method=e.title, bits=bits)) is not None
        ]
        if len(pairs) > 2:
            found[_place(direction, bits)] = float(stats.spearmanr(*zip(*pairs, strict=True)).statistic)
    if not found:
        return Claim(statement, "not run", "The paper has no numbers for this data, or fewer than three methods ran.")
    same = sum(value > 0.999 for value in found.values())
    verdict: Verdict = (
        "holds" if same == len(found) else "holds in part" if fmean(found.values()) >= 0.5 else "does not hold"
    )
    summary = (
        f"The rank correlation (Spearman) with the paper's table is {fmean(found.values()):.2f} on average, "
        f"from {min(found.values()):.2f} to {max(found.values()):.2f}."
    )
    return Claim(statement, verdict, summary, tuple(f"{place}: {value:.2f}" for place, value in found.items()))


def _delta(outcomes: Sequence[Outcome], dataset: str) -> Claim:
    """NDCG is higher where delta is between its bounds than outside: every one inside against every one outside."""
    statement = "NDCG is higher with delta between its bounds than outside."
    sweep = delta_sweep(outcomes, dataset)
    bounds = None if sweep is None else bounds_of(outcomes, dataset, sweep.run.bits)
    if sweep is None or bounds is None:
        return Claim(statement, "not run", _missing())
    inside = [delta for delta in sweep.points if bounds.holds(delta)]
    outside = [delta for delta in sweep.points if not bounds.holds(delta)]
    if not inside or not outside:
        return Claim(statement, "not run", "All deltas that were run lie on one side of the bounds.")
    sentences, agree, asked = [], 0, 0
    for direction in DIRECTIONS:
        scores = dict(zip(sweep.points, sweep.means(direction), strict=True))
        worst, best = min(inside, key=scores.__getitem__), max(outside, key=scores.__getitem__)
        means = fmean(scores[d] for d in inside), fmean(scores[d] for d in outside)
        agree += (means[0] > means[1]) + (scores[worst] > scores[best])
        asked += 2
        sentences.append(
            f"{_place(direction, sweep.run.bits)}: {means[0]:.4f} inside and {means[1]:.4f} outside on average; the "
            f"worst inside is {scores[worst]:.4f} (delta {worst:.3g}), the best outside {scores[best]:.4f} (delta "
            f"{best:.3g})."
        )
    upper = "none" if bounds.upper is None else f"{bounds.upper:g}"
    summary = f"The bounds are {bounds.lower:.2f} and {upper}; {len(inside)} deltas lie inside, {len(outside)} outside."
    return Claim(statement, _verdict(agree, asked), summary, tuple(sentences))


def _ablation(outcomes: Sequence[Outcome], dataset: str) -> Claim:
    """What each part is worth, and where removing it costs nothing."""
    statement = "Each part counts: without triplet loss, classification or pseudo-codes NDCG falls."
    costs = asked = sure = 0
    details: list[str] = []
    for bits, variants in line_up_ablation(outcomes, dataset).items():
        whole = done(variants.get("RMSH", []))
        for name in ABLATIONS:
            group = done(variants.get(name, []))
            for direction in DIRECTIONS if group and whole else ():
                test = compare(whole, group, direction)
                apart = mean_score(whole, direction) - mean_score(group, direction)
                worth = apart if test is None else test.difference
                asked, costs = asked + 1, costs + (worth > 0)
                sure += bool(worth > 0 and test and test.significant)
                details.append(f"{name}, {_place(direction, bits)}: {test or f'{worth:+.4f}, not tested'}.")
    words = (
        f"Removing a part costs in {costs} of {asked} comparisons, in {sure} of them significantly; RMSH minus variant:"
    )
    return Claim(statement, _verdict(costs, asked), words if asked else _missing(), tuple(details))


def _weights(outcomes: Sequence[Outcome], dataset: str) -> Claim:
    """Each weight has a best value: a larger one costs, and for all but lambda3 a smaller one too."""
    statement = "NDCG rises and then falls with λ1, λ2 and λ4, and falls where λ3 is large."
    sweeps = weight_sweeps(outcomes, dataset)
    agree, details = 0, []
    for name, sweep in sweeps.items():
        values, scores = list(sweep.points), _both(sweep)
        best = max(range(len(values)), key=scores.__getitem__)
        agree += best < len(values) - 1 and (best > 0 or name == "lambda3")
        details.append(
            f"{WEIGHTS[name].split(',')[0]}: best at {values[best]:g} ({scores[best]:.4f}, mean of both directions), "
            f"{scores[0]:.4f} at {values[0]:g} and {scores[-1]:.4f} at {values[-1]:g}."
        )
    words = f"{agree} of {len(sweeps)} weights behave so." if sweeps else _missing()
    return Claim(statement, _verdict(agree, len(sweeps)), words, tuple(details))


def _both(sweep: Sweep) -> list[float]:
    return [fmean(scores) for scores in zip(*(sweep.means(direction) for direction in DIRECTIONS), strict=True)]
