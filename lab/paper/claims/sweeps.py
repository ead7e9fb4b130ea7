"""Claims about one parameter: delta and its bounds, and the weights of the loss."""

from __future__ import annotations

from collections.abc import Container, Sequence
from statistics import fmean

from lab.paper.claims.claim import Claim, more, open_claim, place, verdict
from lab.paper.outcomes import DIRECTIONS, Outcome, Sweep
from lab.paper.studies import WEIGHTS, bounds_of, delta_sweep, weight_sweeps

__all__ = ["check_delta", "check_weights"]


def check_delta(outcomes: Sequence[Outcome], dataset: str) -> Claim:
    """NDCG is higher where delta is between its bounds than outside: every one inside against every one outside."""
    statement = "NDCG is higher with delta between its bounds than outside."
    sweep = delta_sweep(outcomes, dataset)
    bounds = None if sweep is None else bounds_of(outcomes, sweep)
    if sweep is None or bounds is None:
        return open_claim(statement)
    inside = [delta for delta in sweep.points if bounds.holds(delta)]
    outside = [delta for delta in sweep.points if not bounds.holds(delta)]
    upper = "none" if bounds.upper is None else f"{bounds.upper:g}"
    waiting = _awaited(outcomes, dataset, ("delta",))
    summary = f"The bounds are {bounds.lower:.2f} and {upper}; {len(inside)} deltas lie inside, {len(outside)} outside"
    summary += more(waiting, "deltas")
    if not inside or not outside:
        return Claim(statement, "open", summary)
    agree, details = _inside_against_outside(sweep, inside, outside)
    return Claim(statement, verdict(agree, 2 * len(DIRECTIONS), waiting=waiting), summary, tuple(details))


def _inside_against_outside(sweep: Sweep, inside: Sequence[float], outside: Sequence[float]) -> tuple[int, list[str]]:
    """How many of two questions a direction are answered with yes: on average, and the worst against the best."""
    agree, details = 0, []
    for direction in DIRECTIONS:
        scores = dict(zip(sweep.points, sweep.means(direction), strict=True))
        worst, best = min(inside, key=scores.__getitem__), max(outside, key=scores.__getitem__)
        means = fmean(scores[d] for d in inside), fmean(scores[d] for d in outside)
        agree += (means[0] > means[1]) + (scores[worst] > scores[best])
        details.append(
            f"{place(direction, sweep.run.bits)}: {means[0]:.4f} inside and {means[1]:.4f} outside on average; the "
            f"worst inside is {scores[worst]:.4f} (delta {worst:.3g}), the best outside {scores[best]:.4f} (delta "
            f"{best:.3g})."
        )
    return agree, details


def _awaited(outcomes: Sequence[Outcome], dataset: str, names: Container[str]) -> int:
    """How many runs of RMSH with one of these options have no scores."""
    asked = (o for o in outcomes if not o.done and o.run.dataset == dataset and o.run.method == "rmsh")
    return sum(any(name in names for name in outcome.run.options) for outcome in asked)


def check_weights(outcomes: Sequence[Outcome], dataset: str) -> Claim:
    """Each weight has a best value: a larger one costs, and for all but lambda3 a smaller one too."""
    statement = "NDCG rises and then falls with λ1, λ2 and λ4, and falls where λ3 is large."
    sweeps = weight_sweeps(outcomes, dataset)
    if not sweeps:
        return open_claim(statement)
    agree, details = 0, []
    for name, sweep in sweeps.items():
        values, scores = list(sweep.points), _both(sweep)
        best = max(range(len(values)), key=scores.__getitem__)
        agree += best < len(values) - 1 and (best > 0 or name == "lambda3")
        details.append(
            f"{WEIGHTS[name].split(',')[0]}: best at {values[best]:g} ({scores[best]:.4f}, mean of both directions), "
            f"{scores[0]:.4f} at {values[0]:g} and {scores[-1]:.4f} at {values[-1]:g}."
        )
    waiting = _awaited(outcomes, dataset, WEIGHTS) + len(WEIGHTS) - len(sweeps)
    summary = f"{agree} of {len(sweeps)} weights behave so" + more(waiting, "weights or values")
    return Claim(statement, verdict(agree, len(sweeps), waiting=waiting), summary, tuple(details))


def _both(sweep: Sweep) -> list[float]:
    return [fmean(scores) for scores in zip(*(sweep.means(direction) for direction in DIRECTIONS), strict=True)]
