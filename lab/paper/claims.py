"""The claims of the paper, each with a verdict and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import stats

from lab.paper.published import COMPARED, DIRECTION_TITLES, DIRECTION_WORDS, method_title, paper_score
from lab.paper.results import (
    ABLATIONS,
    BOTH,
    DELTA,
    DIRECTIONS,
    MAP,
    NDCG,
    PRINTED,
    WEIGHTS,
    Comparison,
    Experiment,
    Method,
    RunResult,
    Sweep,
    done,
    mean_score,
)
from lab.paper.significance import LEVEL, Difference, compare, noise_of

if TYPE_CHECKING:
    from rmsh.core.types import ScoreArray

Verdict: TypeAlias = Literal[
    "confirmed", "confirmed so far", "partly confirmed", "not confirmed", "not decided", "not tested"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_DRAWS = 10_000  # of scores with the noise of the seeds
WEIGHT_TITLES = {
    "lambda1": "λ1, triplets within a modality",
    "lambda2": "λ2, triplets across modalities",
    "lambda3": "λ3, classification of pseudo-codes",
    "lambda4": "λ4, quantisation",
}
_LABEL_FREE = Method("cca-itq")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, a verdict, the numbers in a sentence, and one sentence per exception."""

    statement: str
    verdict: Verdict
    summary: str
    details: tuple[str, ...] = ()


def verdict(agree: int, compared: int, *, contradict: int = 0, missing: int = 0) -> Verdict:
    """The verdict for a number of comparisons; those that neither agree nor contradict are within the noise of seeds.

    A claim holds in part if at least half of the comparisons agree.

    Example:
        >>> verdict(3, 3), verdict(3, 3, missing=1), verdict(2, 3, contradict=1), verdict(1, 8, contradict=7)
        ('confirmed', 'confirmed so far', 'partly confirmed', 'not confirmed')
        >>> verdict(1, 8), verdict(0, 3, contradict=1), verdict(0, 0, missing=2)
        ('not decided', 'not confirmed', 'not tested')
    """
    if not compared:
        return "not tested"
    if agree == compared:
        return "confirmed so far" if missing else "confirmed"
    if 2 * agree >= compared:
        return "partly confirmed"
    return "not confirmed" if contradict else "not decided"


def judge(found: Sequence[Difference], *, missing: int = 0) -> Verdict:
    """The verdict for differences, each of which should be above zero."""
    agree = sum(difference.agrees for difference in found)
    contradict = sum(difference.decided for difference in found) - agree
    return verdict(agree, len(found), contradict=contradict, missing=missing)


def check_claims(experiment: Experiment) -> list[Claim]:
    """All claims about RMSH with the experiment's preset, in the order of the paper."""
    name = experiment.rmsh.title
    return [
        check_best(experiment, NDCG, f"{name} is the best of the eight methods (NDCG@500)."),
        check_best(experiment, MAP, f"Precision and recall agree with NDCG: {name} is also the best by mAP."),
        check_order(experiment),
        check_delta(experiment),
        check_ablation(experiment),
        check_weights(experiment),
    ]


def _not_tested(statement: str, details: Sequence[str] = ()) -> Claim:
    return Claim(statement, "not tested", "The runs that test this are missing.", tuple(details))


def _missing(count: int, what: str) -> str:
    return f"; {count} more {what} are missing." if count else "."


def _counted(found: Sequence[Difference]) -> str:
    undecided = sum(not difference.decided for difference in found)
    remark = f"; {undecided} {'is' if undecided == 1 else 'are'} not decided" if undecided else ""
    return f"{sum(d.agrees for d in found)} of {len(found)} comparisons{remark}"


def _where(direction: str, bits: int) -> str:
    return f"{DIRECTION_TITLES[direction]}, {bits} bits"


def check_best(experiment: Experiment, metric: str, statement: str) -> Claim:
    """RMSH is better than the best of the seven others.

    One better method refutes the claim; RMSH is not called the best before all eight have scores.
    """
    comparison, missing = experiment.comparison, 0
    found: list[Difference] = []
    details: list[str] = []
    for direction, bits in _columns(comparison):
        ranked = comparison.ranked(bits, direction, metric=metric)
        others = [method for method in ranked if method != experiment.rmsh]
        rivals: dict[str, Any] = {"metric": metric, "choices": len(others)}
        difference = comparison.compare(experiment.rmsh, others[0], bits, direction, **rivals) if others else None
        if difference is None or (len(ranked) < len(COMPARED) and difference.value > 0):
            missing += 1
            details += [_first_of_some(comparison, ranked, direction, bits)] if difference else []
            continue
        found.append(difference)
        if not difference.agrees:
            details.append(f"{_where(direction, bits)}: {experiment.rmsh.title} minus {others[0].title}: {difference}.")
    if not found:
        return _not_tested(statement, details)
    summary = f"It is ahead of the seven others in {_counted(found)}" + _missing(missing, "comparisons")
    return Claim(statement, judge(found, missing=missing), summary, tuple(details))


def _columns(comparison: Comparison) -> list[tuple[str, int]]:
    """The directions and code lengths of the eight methods, run or not."""
    lengths = [bits for bits in comparison.bits if any(comparison.cell(method, bits) for method in comparison.eight)]
    return [(direction, bits) for direction in DIRECTIONS for bits in lengths]


def _first_of_some(comparison: Comparison, ranked: list[Method], direction: str, bits: int) -> str:
    missing = ", ".join(method.title for method in comparison.eight if method not in ranked)
    return f"{_where(direction, bits)}: RMSH is first of the {len(ranked)} that have scores; missing: {missing}."


def check_order(experiment: Experiment) -> Claim:
    """The methods come in the paper's order, by Spearman's rank correlation, where all eight have scores.

    The claim holds in part if the mean correlation is at least 0.5; its interval covers the noise of the seeds.
    """
    comparison = experiment.comparison
    statement = f"With {experiment.rmsh.title}, the eight methods rank in the paper's order."
    random = np.random.default_rng(0)
    found = {
        column: _rank_correlations(comparison, experiment.dataset, *column, random) for column in _columns(comparison)
    }
    compared = [values for values, count in found.values() if count == len(COMPARED)]
    details = [
        f"{_where(*column)}: {values[0]:.2f} over {count} methods"
        for column, (values, count) in found.items()
        if len(values)
    ]
    if not compared:
        return _not_tested(statement, details)
    measured = [float(values[0]) for values in compared]
    low, high = np.quantile(np.mean(compared, axis=0)[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    noise = "noise unknown" if np.isnan(low) else f"{low:.2f} to {high:.2f} within the noise of the seeds"
    summary = (
        f"The rank correlation (Spearman) with the paper's table is {fmean(measured):.2f} on average ({noise}), "
        f"from {min(measured):.2f} to {max(measured):.2f}"
    )
    missing = len(found) - len(compared)
    result = _order_verdict(measured, float(low), float(high), missing)
    return Claim(statement, result, summary + _missing(missing, "comparisons"), tuple(details))


def _rank_correlations(
    comparison: Comparison, dataset: str, direction: str, bits: int, random: np.random.Generator
) -> tuple[ScoreArray, int]:
    """The rank correlation of our scores and the paper's, then those of scores with noise; and of how many methods.

    Without values for fewer than three methods; not a number with noise if that of a method is unknown.
    """
    measured, noisy, printed = [], [], []
    for method in comparison.ranked(bits, direction):
        score = paper_score(1, dataset, direction=direction, method=method_title(method.name), bits=bits)
        if score is None:
            continue
        group = done(comparison.cell(method, bits))
        noise = comparison.noise(method, bits, direction, NDCG)
        printed.append(score)
        measured.append(mean_score(group, direction))
        scale = (noise.variance / len(group)) ** 0.5 if noise.degrees else np.nan
        noisy.append(scale * random.standard_t(max(noise.degrees, 1), _DRAWS))
    if len(printed) < 3:
        return np.empty(0), len(printed)
    scores = np.array(measured) + np.vstack([np.zeros(len(noisy)), np.array(noisy).T])
    ranks = stats.rankdata(scores, axis=1, nan_policy="propagate")
    centred, target = ranks - ranks.mean(axis=1, keepdims=True), stats.rankdata(printed) - (len(printed) + 1) / 2
    return centred @ target / np.sqrt(np.square(centred).sum(axis=1) * np.square(target).sum()), len(printed)


def _order_verdict(measured: list[float], low: float, high: float, missing: int) -> Verdict:
    same = sum(value > 0.999 for value in measured)
    if same == len(measured):
        return verdict(same, len(measured), missing=missing)
    return "partly confirmed" if low >= 0.5 else "not confirmed" if high < 0.5 else "not decided"


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
    statement = f"NDCG of {experiment.rmsh.title} is higher with delta between its bounds than outside."
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
    found, details = _inside_and_outside(sweep, inside, outside)
    return Claim(statement, judge(found, missing=missing), summary, tuple(details))


def _without_scores(results: Iterable[RunResult]) -> int:
    return sum(not result.done for result in results)


def _inside_and_outside(
    sweep: Sweep, inside: Sequence[float], outside: Sequence[float]
) -> tuple[list[Difference], list[str]]:
    """Two comparisons per direction: the means, and the worst delta inside with the best outside."""
    found, details, pairs = [], [], len(inside) * len(outside)
    for direction in DIRECTIONS:
        scores = dict(zip(sweep.points, sweep.means(direction), strict=True))
        worst, best = min(inside, key=scores.__getitem__), max(outside, key=scores.__getitem__)
        means = sweep.compare(inside, outside, direction)
        ends = sweep.compare([worst], [best], direction, choices=pairs)
        found += [means, ends]
        details.append(
            f"{_where(direction, sweep.first.run.bits)}: mean inside minus mean outside {means}; worst inside ("
            f"{scores[worst]:.4f}, delta {worst:.3g}) minus best outside ({scores[best]:.4f}, delta {best:.3g}) {ends}."
        )
    return found, details


def check_ablation(experiment: Experiment) -> Claim:
    """Removing a part of RMSH lowers NDCG."""
    name, missing = experiment.rmsh.title, 0
    statement = f"Each part matters: {name} loses NDCG without triplet loss, classification or pseudo-codes."
    found: list[Difference] = []
    details: list[str] = []
    for variant, direction in product(ABLATIONS, DIRECTIONS):
        compared = {bits: compare_parts(experiment, variant, bits, direction) for bits in experiment.ablation()}
        tested = {bits: difference for bits, difference in compared.items() if difference}
        if tested:
            by_length = "; ".join(f"{bits} bits {difference}" for bits, difference in tested.items())
            details.append(f"{name} minus {variant}, {DIRECTION_TITLES[direction]}: {by_length}.")
        found += tested.values()
        missing += len(compared) - len(tested)
    if not found:
        return _not_tested(statement)
    summary = f"Removing a part lowers NDCG in {_counted(found)}" + _missing(missing, "comparisons")
    details += loss_shares(experiment)
    return Claim(statement, judge(found, missing=missing), summary, tuple(details))


def compare_parts(experiment: Experiment, variant: str, bits: int, direction: str) -> Difference | None:
    """The full RMSH minus a variant, each with its own noise; None before both have runs."""
    full, other = (
        {length: done(variants.get(name, [])) for length, variants in experiment.ablation().items()}
        for name in ("RMSH", variant)
    )
    if not (full[bits] and other[bits]):
        return None
    noise = (noise_of(side[bits], side.values(), direction, NDCG) for side in (full, other))
    return compare(full[bits], other[bits], direction, metric=NDCG, noise=(next(noise), next(noise)))


def loss_shares(experiment: Experiment) -> list[str]:
    """What the terms of the loss amount to in the last epoch of the full method, one sentence per code length."""
    sentences = []
    for bits, variants in experiment.ablation().items():
        last = [result.result["history"][-1] for result in done(variants["RMSH"]) if result.result.get("history")]
        if last and "classification" in last[0]:
            means = {name: fmean(terms.get(name, 0.0) for terms in last) for name in last[0]}
            triplets = sum(means.get(name, 0.0) for name in ("intra", "inter", "pseudo intra"))
            sentences.append(
                f"{bits} bits, last epoch, weighted terms of the loss: triplets {triplets:.2f}, classification "
                f"{means['classification'] + means.get('pseudo classification', 0.0):.2f}, quantisation "
                f"{means['quantisation']:.2f}."
            )
    return sentences


def weight_sweeps(experiment: Experiment) -> dict[str, Sweep]:
    """The sweep of each weight of the loss that has one."""
    found = {name: experiment.sweep(WEIGHTS, name) for name in WEIGHT_TITLES}
    return {name: sweep for name, sweep in found.items() if sweep is not None}


def check_weights(experiment: Experiment) -> Claim:
    """Each weight has a best value: a larger one lowers NDCG, and for all but lambda3 a smaller one too."""
    statement = f"NDCG of {experiment.rmsh.title} rises and then falls with λ1, λ2 and λ4, and falls when λ3 is large."
    sweeps = weight_sweeps(experiment)
    if not sweeps:
        return _not_tested(statement)
    found, details = [], []
    for name, sweep in sweeps.items():
        values, scores = list(sweep.points), dict(zip(sweep.points, sweep.means(BOTH), strict=True))
        inner = values[int(name != "lambda3") : -1]
        best, ends = max(inner, key=scores.__getitem__), values[-1:] if name == "lambda3" else [values[0], values[-1]]
        each = [sweep.compare([best], [end], BOTH, choices=len(inner)) for end in ends]
        found.append(min(each, key=lambda difference: difference.value - (difference.margin or 0.0)))
        shown = "; ".join(f"difference from {end:g}: {difference}" for difference, end in zip(each, ends, strict=True))
        title = WEIGHT_TITLES[name].split(",")[0]
        details.append(f"{title}: {scores[best]:.4f} at {best:g}, mean of both directions; {shown}.")
    missing = _without_scores(experiment.of(WEIGHTS)) + len(WEIGHT_TITLES) - len(sweeps)
    undecided = sum(not difference.decided for difference in found)
    summary = f"This holds for {sum(d.agrees for d in found)} of {len(found)} weights"
    summary += f"; {undecided} {'is' if undecided == 1 else 'are'} not decided" if undecided else ""
    summary += _missing(missing, "weights or values")
    return Claim(statement, judge(found, missing=missing), summary, tuple(details))


def label_free_sentences(comparison: Comparison) -> list[str]:
    """One sentence per direction in which CCA-ITQ, which uses no labels, is ahead of RMSH as printed at some length."""
    printed, sentences = Method("rmsh", PRINTED), []
    for direction, title in DIRECTION_WORDS.items():
        found = {bits: comparison.compare(_LABEL_FREE, printed, bits, direction) for bits in comparison.bits}
        ahead = [bits for bits, difference in found.items() if difference is not None and difference.agrees]
        if ahead:
            scores = [
                " against ".join(
                    f"{mean_score(done(comparison.cell(m, bits)), direction):.3f}" for m in (printed, _LABEL_FREE)
                )
                for bits in ahead
            ]
            sentences.append(
                f"{title}, {printed.title} loses to {_LABEL_FREE.title}, which uses no labels, at {listed(ahead)} "
                f"bits: NDCG@500 {listed(scores)}."
            )
    return sentences


def listed(values: Sequence[object]) -> str:
    """Values with commas and an "and".

    Example:
        >>> listed([32, 64, 128]), listed([16])
        ('32, 64 and 128', '16')
    """
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def summarise(experiment: Experiment, claims: Sequence[Claim]) -> str:
    """The scores of RMSH, of the best other methods and of a random ranking, and a count of the verdicts."""
    found = Counter(claim.verdict for claim in claims)
    counts = ", ".join(f"{found[name]} {name}" for name in VERDICTS if found[name])
    sentences = [*_score_sentences(experiment.comparison), *label_free_sentences(experiment.comparison)]
    return " ".join([*sentences, f"Verdicts on the claims below: {counts}."])


def _score_sentences(comparison: Comparison) -> list[str]:
    bits = comparison.usual_bits if comparison.bits else 0
    rmsh = done(comparison.cell(comparison.rmsh, bits))
    if not bits or not rmsh:
        return []
    scored = [method for method in comparison.runs if not method.preset and done(comparison.cell(method, bits))]
    others = [method for method in comparison.eight if method in scored and method != comparison.rmsh]
    further = [method for method in scored if method.name not in COMPARED]
    ours = " / ".join(f"{mean_score(rmsh, direction):.4f}" for direction in DIRECTIONS)
    chance = " / ".join(f"{rmsh[0].chance(direction):.4f}" for direction in DIRECTIONS)
    titles = " / ".join(DIRECTION_TITLES.values())
    all_seven = len(others) == len(COMPARED) - 1
    count = "the other seven" if all_seven else f"the {len(others)} of the other seven that ran"
    codes = [method for method in further if not comparison.is_reference(method)]
    references = [method for method in further if comparison.is_reference(method)]
    return [
        f"{comparison.rmsh.title} at {bits} bits scores {ours} NDCG@500 ({titles}), a random ranking {chance}.",
        *_best_sentence(comparison, others, bits, f"The best of {count}"),
        *_best_sentence(comparison, codes, bits, "The best method that is not in the paper"),
        *_best_sentence(comparison, references, bits, "The best ranking by real-valued vectors"),
    ]


def _best_sentence(comparison: Comparison, methods: Sequence[Method], bits: int, subject: str) -> list[str]:
    found = []
    for direction in DIRECTIONS if methods else ():
        means = {method: mean_score(done(comparison.cell(method, bits)), direction) for method in methods}
        best = max(means, key=means.__getitem__)
        found.append(f"{best.title.removeprefix('no codes: ')} with {means[best]:.4f} ({DIRECTION_TITLES[direction]})")
    return [f"{subject}: {', '.join(found)}."] if found else []
