"""The claims of the paper, each with a verdict and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeAlias

from scipy import stats

from lab.paper.published import COMPARED, DIRECTION_TITLES, paper_score
from lab.paper.results import (
    ABLATIONS,
    DELTA,
    DIRECTIONS,
    MAP,
    NDCG,
    WEIGHTS,
    Comparison,
    Experiment,
    Method,
    RunResult,
    Sweep,
    done,
    mean_score,
)
from lab.paper.significance import compare

Verdict: TypeAlias = Literal["confirmed", "confirmed so far", "partly confirmed", "not confirmed", "not tested"]
VERDICTS: tuple[Verdict, ...] = ("confirmed", "confirmed so far", "partly confirmed", "not confirmed", "not tested")
WEIGHT_TITLES = {
    "lambda1": "λ1, triplets within a modality",
    "lambda2": "λ2, triplets across modalities",
    "lambda3": "λ3, classes of pseudo-codes",
    "lambda4": "λ4, quantisation",
}
_RMSH = Method("rmsh")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, a verdict, the numbers in a sentence, and one sentence per exception."""

    statement: str
    verdict: Verdict
    summary: str
    details: tuple[str, ...] = ()


def verdict(agree: int, compared: int, *, missing: int = 0) -> Verdict:
    """The verdict for a number of comparisons, of which some agree with the paper and some are missing.

    Example:
        >>> verdict(3, 3), verdict(3, 3, missing=1), verdict(1, 3), verdict(0, 3), verdict(0, 0, missing=2)
        ('confirmed', 'confirmed so far', 'partly confirmed', 'not confirmed', 'not tested')
    """
    if not compared:
        return "not tested"
    if agree == compared:
        return "confirmed so far" if missing else "confirmed"
    return "partly confirmed" if agree else "not confirmed"


def check_claims(experiment: Experiment) -> list[Claim]:
    """All claims, in the order of the paper."""
    comparison = experiment.comparison
    return [
        check_best(comparison, NDCG, "RMSH is the best of the eight methods (NDCG@500)."),
        check_best(comparison, MAP, "Precision and recall agree with NDCG: RMSH is also the best by mAP."),
        check_order(comparison, experiment.dataset),
        check_delta(experiment),
        check_ablation(experiment),
        check_weights(experiment),
    ]


def _not_tested(statement: str, details: Sequence[str] = ()) -> Claim:
    return Claim(statement, "not tested", "The runs that test this are missing.", tuple(details))


def _missing(count: int, what: str) -> str:
    return f"; {count} more {what} are missing." if count else "."


def _where(direction: str, bits: int) -> str:
    return f"{DIRECTION_TITLES[direction]}, {bits} bits"


def check_best(comparison: Comparison, metric: str, statement: str) -> Claim:
    """RMSH is first of all eight methods.

    One better method is enough against RMSH; RMSH is not called the best before all eight have scores.
    """
    first = compared = significant = missing = 0
    details: list[str] = []
    for direction, bits in _columns(comparison):
        ranked = comparison.ranked(bits, direction, metric=metric)
        if _RMSH in ranked and ranked[0] != _RMSH:
            compared += 1
            details.append(_better_method(comparison, ranked, direction, bits=bits, metric=metric))
        elif len(ranked) < len(COMPARED):
            missing += 1
            details += [_first_of_some(ranked, direction, bits)] if len(ranked) > 1 and _RMSH in ranked else []
        else:
            compared, first = compared + 1, first + 1
            ours, theirs = (done(comparison.cell(method, bits)) for method in ranked[:2])
            test = compare(ours, theirs, direction)
            significant += bool(metric == NDCG and test and test.significant)
    if not compared:
        return _not_tested(statement, details)
    summary = f"RMSH is first in {first} of {compared} comparisons over code lengths and directions"
    summary += f", significantly in {significant}" if metric == NDCG else ""
    result = verdict(first, compared, missing=missing)
    return Claim(statement, result, summary + _missing(missing, "comparisons"), tuple(details))


def _columns(comparison: Comparison) -> list[tuple[str, int]]:
    """The directions and code lengths of the eight methods, run or not."""
    lengths = [bits for bits in comparison.bits if any(comparison.cell(Method(name), bits) for name in COMPARED)]
    return [(direction, bits) for direction in DIRECTIONS for bits in lengths]


def _better_method(comparison: Comparison, ranked: list[Method], direction: str, *, bits: int, metric: str) -> str:
    ours, theirs = (done(comparison.cell(method, bits)) for method in (_RMSH, ranked[0]))
    test = compare(ours, theirs, direction) if metric == NDCG else None
    return (
        f"{_where(direction, bits)}: {ranked[0].title} is first with {mean_score(theirs, direction, metric):.4f}; RMSH "
        f"has {mean_score(ours, direction, metric):.4f}, rank {ranked.index(_RMSH) + 1} of {len(ranked)}"
        + (f" ({test})." if test else ".")
    )


def _first_of_some(ranked: list[Method], direction: str, bits: int) -> str:
    missing = ", ".join(Method(name).title for name in COMPARED if Method(name) not in ranked)
    return f"{_where(direction, bits)}: RMSH is first of the {len(ranked)} that have scores; missing: {missing}."


def check_order(comparison: Comparison, dataset: str) -> Claim:
    """The methods come in the paper's order, by Spearman's rank correlation, where all eight have scores."""
    statement = "The eight methods come in the paper's order."
    found = {column: _rank_correlation(comparison, dataset, *column) for column in _columns(comparison)}
    values = [value for value, count in found.values() if value is not None and count == len(COMPARED)]
    details = [
        f"{_where(*column)}: {value:.2f} over {count} methods"
        for column, (value, count) in found.items()
        if value is not None
    ]
    if not values:
        return _not_tested(statement, details)
    summary = (
        f"The rank correlation (Spearman) with the paper's table is {fmean(values):.2f} on average, "
        f"from {min(values):.2f} to {max(values):.2f}"
    )
    missing = len(found) - len(values)
    result = _order_verdict(values, missing)
    return Claim(statement, result, summary + _missing(missing, "comparisons"), tuple(details))


def _rank_correlation(comparison: Comparison, dataset: str, direction: str, bits: int) -> tuple[float | None, int]:
    """The rank correlation of our scores and the paper's, and of how many methods; None for fewer than three."""
    pairs = [
        (mean_score(done(comparison.cell(method, bits)), direction), printed)
        for method in comparison.ranked(bits, direction)
        if (printed := paper_score(1, dataset, direction=direction, method=method.title, bits=bits)) is not None
    ]
    if len(pairs) < 3:
        return None, len(pairs)
    return float(stats.spearmanr(*zip(*pairs, strict=True)).statistic), len(pairs)


def _order_verdict(values: list[float], missing: int) -> Verdict:
    same = sum(value > 0.999 for value in values)
    if same == len(values):
        return verdict(same, len(values), missing=missing)
    return "partly confirmed" if fmean(values) >= 0.5 else "not confirmed"


@dataclass(frozen=True)
class DeltaBounds:
    """The paper's bounds of delta; ``upper`` is None if the labels have more entropy than a code has bits."""

    lower: float
    upper: float | None

    def __contains__(self, delta: float) -> bool:
        """Whether a delta lies between the bounds.

        Example:
            >>> 16 in DeltaBounds(8.5, 39), 42.7 in DeltaBounds(8.5, 39), 16 in DeltaBounds(8.5, None)
            (True, False, False)
        """
        return self.upper is not None and self.lower <= delta <= self.upper


def delta_bounds(results: Iterable[RunResult]) -> DeltaBounds | None:
    """The bounds that a run without a given delta computed from its training labels; None if there is no such run."""
    for result in done(results):
        if paper := result.result["facts"]["delta"].get("paper"):
            return DeltaBounds(paper["lower"], paper["upper"])
    return None


def check_delta(experiment: Experiment) -> Claim:
    """Every delta between the bounds scores higher than every delta outside."""
    statement = "NDCG is higher with delta between its bounds than outside."
    sweep, bounds = experiment.sweep(DELTA, "delta"), delta_bounds(experiment.of(DELTA))
    if sweep is None or bounds is None:
        return _not_tested(statement)
    inside = [delta for delta in sweep.points if delta in bounds]
    outside = [delta for delta in sweep.points if delta not in bounds]
    upper = "none" if bounds.upper is None else f"{bounds.upper:g}"
    missing = _without_scores(experiment.of(DELTA))
    summary = f"The bounds are {bounds.lower:.2f} and {upper}; {len(inside)} deltas lie inside, {len(outside)} outside"
    summary += _missing(missing, "deltas")
    if not inside or not outside:
        return Claim(statement, "not tested", summary)
    agree, details = _inside_and_outside(sweep, inside, outside)
    return Claim(statement, verdict(agree, 2 * len(DIRECTIONS), missing=missing), summary, tuple(details))


def _without_scores(results: Iterable[RunResult]) -> int:
    return sum(not result.done for result in results)


def _inside_and_outside(sweep: Sweep, inside: Sequence[float], outside: Sequence[float]) -> tuple[int, list[str]]:
    """Two comparisons per direction: the means, and the worst delta inside with the best outside."""
    agree, details = 0, []
    for direction in DIRECTIONS:
        scores = dict(zip(sweep.points, sweep.means(direction), strict=True))
        worst, best = min(inside, key=scores.__getitem__), max(outside, key=scores.__getitem__)
        means = fmean(scores[d] for d in inside), fmean(scores[d] for d in outside)
        agree += (means[0] > means[1]) + (scores[worst] > scores[best])
        details.append(
            f"{_where(direction, sweep.first.run.bits)}: {means[0]:.4f} inside and {means[1]:.4f} outside on average; "
            f"the worst inside is {scores[worst]:.4f} (delta {worst:.3g}), the best outside {scores[best]:.4f} (delta "
            f"{best:.3g})."
        )
    return agree, details


def check_ablation(experiment: Experiment) -> Claim:
    """Removing a part of RMSH lowers NDCG."""
    statement = "Each part matters: without triplet loss, classification or pseudo-codes NDCG falls."
    lower = compared = significant = missing = 0
    details: list[str] = []
    for bits, variants in experiment.ablation().items():
        full = done(variants["RMSH"])
        for name in ABLATIONS:
            group = done(variants.get(name, []))
            if not full or not group:
                missing += len(DIRECTIONS)
                continue
            for direction in DIRECTIONS:
                test = compare(full, group, direction)
                difference = mean_score(full, direction) - mean_score(group, direction)
                loss = difference if test is None else test.difference
                compared, lower = compared + 1, lower + (loss > 0)
                significant += bool(loss > 0 and test and test.significant)
                details.append(f"{name}, {_where(direction, bits)}: {test or f'{loss:+.4f}, no test'}.")
    if not compared:
        return _not_tested(statement)
    summary = f"Removing a part lowers NDCG in {lower} of {compared} comparisons, significantly in {significant}"
    summary += _missing(missing, "comparisons") + " RMSH minus variant:"
    return Claim(statement, verdict(lower, compared, missing=missing), summary, tuple(details))


def weight_sweeps(experiment: Experiment) -> dict[str, Sweep]:
    """The sweep of each weight of the loss that has one."""
    found = {name: experiment.sweep(WEIGHTS, name) for name in WEIGHT_TITLES}
    return {name: sweep for name, sweep in found.items() if sweep is not None}


def check_weights(experiment: Experiment) -> Claim:
    """Each weight has a best value: a larger one lowers NDCG, and for all but lambda3 a smaller one too."""
    statement = "NDCG rises and then falls with λ1, λ2 and λ4, and falls when λ3 is large."
    sweeps = weight_sweeps(experiment)
    if not sweeps:
        return _not_tested(statement)
    agree, details = 0, []
    for name, sweep in sweeps.items():
        values = list(sweep.points)
        scores = [fmean(both) for both in zip(*(sweep.means(direction) for direction in DIRECTIONS), strict=True)]
        best = max(range(len(values)), key=scores.__getitem__)
        agree += best < len(values) - 1 and (best > 0 or name == "lambda3")
        details.append(
            f"{WEIGHT_TITLES[name].split(',')[0]}: best at {values[best]:g} ({scores[best]:.4f}, mean of both "
            f"directions), {scores[0]:.4f} at {values[0]:g} and {scores[-1]:.4f} at {values[-1]:g}."
        )
    missing = _without_scores(experiment.of(WEIGHTS)) + len(WEIGHT_TITLES) - len(sweeps)
    summary = f"{agree} of {len(sweeps)} weights do" + _missing(missing, "weights or values")
    return Claim(statement, verdict(agree, len(sweeps), missing=missing), summary, tuple(details))


def summarise(experiment: Experiment, claims: Sequence[Claim]) -> str:
    """The scores of RMSH, of the best other methods and of a random ranking, and a count of the verdicts."""
    found = Counter(claim.verdict for claim in claims)
    counts = ", ".join(f"{found[name]} {name}" for name in VERDICTS if found[name])
    return " ".join([*_score_sentences(experiment.comparison), f"Of {len(claims)} claims of the paper: {counts}."])


def _score_sentences(comparison: Comparison) -> list[str]:
    bits = comparison.usual_bits if comparison.bits else 0
    rmsh = done(comparison.cell(_RMSH, bits))
    if not bits or not rmsh:
        return []
    scored = [method for method in comparison.runs if not method.preset and done(comparison.cell(method, bits))]
    others = [method for method in scored if method.name in COMPARED and method != _RMSH]
    further = [method for method in scored if method.name not in COMPARED]
    ours = " / ".join(f"{mean_score(rmsh, direction):.4f}" for direction in DIRECTIONS)
    chance = " / ".join(f"{rmsh[0].chance(direction):.4f}" for direction in DIRECTIONS)
    titles = " / ".join(DIRECTION_TITLES.values())
    all_seven = len(others) == len(COMPARED) - 1
    count = "the other seven" if all_seven else f"the {len(others)} of the other seven that ran"
    codes = [method for method in further if not comparison.is_reference(method)]
    references = [method for method in further if comparison.is_reference(method)]
    return [
        f"RMSH at {bits} bits scores {ours} NDCG@500 ({titles}), a random ranking {chance}.",
        *_best_sentence(comparison, others, bits, f"The best of {count}"),
        *_best_sentence(comparison, codes, bits, "The best method that is not in the paper"),
        *_best_sentence(comparison, references, bits, "The best ranking by real numbers"),
    ]


def _best_sentence(comparison: Comparison, methods: Sequence[Method], bits: int, subject: str) -> list[str]:
    found = []
    for direction in DIRECTIONS if methods else ():
        means = {method: mean_score(done(comparison.cell(method, bits)), direction) for method in methods}
        best = max(means, key=means.__getitem__)
        found.append(f"{best.title.removeprefix('no codes: ')} {means[best]:.4f} ({DIRECTION_TITLES[direction]})")
    return [f"{subject}: {', '.join(found)}."] if found else []
