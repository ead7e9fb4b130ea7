"""What is studied of a method by changing one thing: delta, a weight of the loss, a kind of noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lab.paper.names import COMPARED
from lab.paper.outcomes import Outcome, Sweep, done, vary

__all__ = [
    "WEIGHTS",
    "DeltaBounds",
    "bounds_of",
    "delta_sweep",
    "fraction",
    "noise_sweeps",
    "usual_value",
    "weight_sweeps",
]

# The paper's eight, as shares of the code length.
_FRACTIONS = {"K/40": 1 / 40, "K/20": 1 / 20, "K/8": 1 / 8, "3K/20": 3 / 20, "K/4": 1 / 4, "K/3": 1 / 3, "K/2": 1 / 2}
_FRACTIONS |= {"2K/3": 2 / 3}
WEIGHTS = {
    "lambda1": "λ1, triplets within a modality",
    "lambda2": "λ2, triplets across modalities",
    "lambda3": "λ3, classes of pseudo-codes",
    "lambda4": "λ4, quantisation",
}


@dataclass(frozen=True)
class DeltaBounds:
    """The paper's bounds of delta; ``upper`` is None where the labels hold more bits than a code."""

    lower: float
    upper: float | None

    def holds(self, delta: float) -> bool:
        """Whether a delta lies between the two.

        Example:
            >>> DeltaBounds(8.5, 39).holds(16), DeltaBounds(8.5, 39).holds(42.7), DeltaBounds(8.5, None).holds(16)
            (True, False, False)
        """
        return self.upper is not None and self.lower <= delta <= self.upper


def delta_sweep(outcomes: Sequence[Outcome], dataset: str) -> Sweep | None:
    """The runs of RMSH that differ in delta alone, the group with the most deltas; None where there are none."""
    sweeps = vary(outcomes, "delta", where=lambda run: run.dataset == dataset and run.method == "rmsh")
    return sweeps[0] if sweeps and len(sweeps[0].points) > 2 else None


def bounds_of(outcomes: Sequence[Outcome], sweep: Sweep) -> DeltaBounds | None:
    """The bounds of the pairs that a sweep learned from, as a run that was not told a delta found them, or None."""
    asked = sweep.run.dataset, sweep.run.bits, sweep.run.train
    for outcome in done(outcomes):
        run, paper = outcome.run, outcome.result.get("facts", {}).get("delta", {}).get("paper")
        if paper and (run.dataset, run.bits, run.train) == asked and not run.label_noise:
            return DeltaBounds(paper["lower"], paper["upper"])
    return None


def fraction(delta: float, bits: int) -> str:
    """A delta as the paper writes it, where it is one of its eight.

    Example:
        >>> fraction(42.667, 128), fraction(24, 128)
        ('K/3', '')
    """
    near = (name for name, share in _FRACTIONS.items() if abs(share * bits - delta) < 0.01 * delta)
    return next(near, "")


def weight_sweeps(outcomes: Sequence[Outcome], dataset: str) -> dict[str, Sweep]:
    """For each weight the runs of RMSH that differ in it alone, where there are at least three values."""
    found = {
        name: vary(outcomes, name, where=lambda r: r.dataset == dataset and r.method == "rmsh") for name in WEIGHTS
    }
    return {name: sweeps[0] for name, sweeps in found.items() if sweeps and len(sweeps[0].points) > 2}


def usual_value(outcomes: Sequence[Outcome], dataset: str, name: str) -> float:
    """The value of an option that most runs of RMSH have."""
    values = (o.value(name) for o in done(outcomes) if o.run.dataset == dataset and o.run.method == "rmsh")
    return float(Counter(values).most_common(1)[0][0])


def noise_sweeps(outcomes: Sequence[Outcome], dataset: str, name: str) -> dict[str, Sweep]:
    """For each method its runs that differ in one kind of noise alone, in the order of the paper's table."""
    found: dict[str, Sweep] = {}
    for sweep in vary(outcomes, name, where=lambda run: run.dataset == dataset and not run.preset):
        found.setdefault(sweep.run.method, sweep)  # the one with the most values comes first
    order = [*COMPARED, *sorted(found.keys() - set(COMPARED))]
    return {method: found[method] for method in order if method in found}
