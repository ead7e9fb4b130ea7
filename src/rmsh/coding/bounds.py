"""The minimum distance delta between codes of different label sets: its two bounds, and the policy that chooses it.

The upper bound is the largest delta for which K bits provably have room for 2^H(L) codes; the lower bound is the number
of bits that describe the similarities of most items. In the paper's form the lower bound often exceeds the upper bound
for short codes. :func:`choose_delta` therefore goes down this table and stops at the first row whose lower bound does
not exceed its upper bound; delta is the middle of the two, rounded to the nearest whole number, halves up.

    step  lower bound from H_i =     upper bound from
    1     |l_i|        (size)        independent H(L), entropy of the ball    the paper's form
    2     log2 |l_i|   (log2)        the same
    3     estimated    (literal)     the same
    4     |l_i|        (size)        joint H(L), exact Gilbert-Varshamov sum  the tightest form
    5     log2 |l_i|   (log2)        the same
    6     estimated    (literal)     the same
    7     none feasible: delta = max(1, the tightest upper bound), flagged as not feasible

The lower bound is loosened first, and the paper's upper bound is replaced only if every lower bound exceeds it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from rmsh.codes import check_bits
from rmsh.coding.entropy import LabelEntropyForm, LabelStatistics, SimilarityForm, check_form, inverse_binary_entropy
from rmsh.core.errors import ConfigError, InputError
from rmsh.core.types import LabelArray

BallForm: TypeAlias = Literal["entropy", "gilbert-varshamov"]
UpperForm: TypeAlias = tuple[LabelEntropyForm, BallForm]
Inequality: TypeAlias = Literal["chebyshev", "cantelli"]

LOWER_FORMS: tuple[SimilarityForm, ...] = ("size", "log2", "literal")  # the paper's form first
UPPER_FORMS: tuple[UpperForm, ...] = (("independent", "entropy"), ("joint", "gilbert-varshamov"))
GUARD = 1e-9  # tolerance for rounding errors when bounds are compared with whole numbers

_LOWER_WORDS: dict[SimilarityForm, str] = {"size": "|l_i|", "log2": "log2|l_i|", "literal": "H_i estimated"}
_UPPER_WORDS: dict[UpperForm, str] = {
    ("independent", "entropy"): "independent H(L)",
    ("joint", "gilbert-varshamov"): "joint H(L), exact Gilbert-Varshamov sum",
}


@dataclass(frozen=True)
class Bounds:
    """A lower and an upper bound of delta, and the forms that they come from."""

    lower: float
    lower_form: SimilarityForm
    upper: int | None  # None if the labels have more bits than a code
    upper_form: UpperForm

    @property
    def feasible(self) -> bool:
        """Whether there is a delta between the two."""
        return self.upper is not None and self.lower <= self.upper + GUARD

    @property
    def delta(self) -> int:
        """The middle of the bounds, halves up; if they leave no delta, the upper one, or 1."""
        upper = self.upper or 1
        return math.floor((self.lower + upper) / 2 + 0.5) if self.feasible else upper

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"upper_form": list(self.upper_form), "feasible": self.feasible}

    def __str__(self) -> str:
        upper = "none" if self.upper is None else self.upper
        return f"{self.lower:.2f} ({_LOWER_WORDS[self.lower_form]}) and {upper} ({_UPPER_WORDS[self.upper_form]})"


@dataclass(frozen=True)
class DeltaChoice:
    """A delta and the bounds it was chosen from."""

    bits: int
    delta: int  # from 1 to bits
    used: Bounds  # those of the step at which the policy stopped
    paper: Bounds  # those of step 1

    @property
    def feasible(self) -> bool:
        """Whether some form of the bounds allows this delta."""
        return self.used.feasible

    @property
    def reason(self) -> str:
        """A sentence for the user about how delta was chosen."""
        if self.paper.feasible:
            return f"the middle of the paper's bounds, {self.paper}."
        if self.feasible:
            return f"the paper's bounds, {self.paper}, leave no delta; this is the middle of {self.used}."
        if self.used.upper is not None:
            return f"no form of the bounds leaves a delta, even {self.used} cross; this is the upper one."
        return (
            f"no form of the bounds leaves a delta: the labels hold more than {self.bits} bits; this is the smallest."
        )

    def to_json(self) -> dict[str, Any]:
        choice = {"bits": self.bits, "delta": self.delta, "feasible": self.feasible, "reason": self.reason}
        return choice | {"used": self.used.to_json(), "paper": self.paper.to_json()}


def upper_bound(bits: int, entropy: float, *, form: BallForm = "entropy") -> int | None:
    """The largest delta for which ``bits`` bits provably keep 2^entropy label sets delta apart.

    ``entropy`` is Theorem 1 of the paper, H2((delta - 1) / bits) <= 1 - entropy / bits, at most 1 + bits / 2.
    ``gilbert-varshamov`` sums the Hamming ball exactly instead of estimating it and is never smaller: the largest delta
    up to ``bits`` with sum over i < delta of C(bits, i) <= 2^(bits - entropy). The result is at least 1, or None if the
    entropy exceeds ``bits``, so that no delta is possible.

    Example:
        >>> upper_bound(64, 13.04), upper_bound(64, 13.04, form="gilbert-varshamov"), upper_bound(8, 13.04)
        (16, 18, None)
    """
    check_form(form, get_args(BallForm))
    check_bits(bits)
    if not (math.isfinite(entropy) and entropy >= 0):
        raise InputError(f"The entropy is {entropy} bits; it must be a finite number from 0.")
    spare = bits - entropy
    if spare < -GUARD:
        return None
    if form == "entropy":
        return math.floor(1 + bits * inverse_binary_entropy(max(0.0, spare / bits)) + GUARD)
    balls = itertools.accumulate(math.comb(bits, i) for i in range(bits))  # integers, so the sum is exact
    return sum(1 for _ in itertools.takewhile(lambda ball: math.log2(ball) <= spare + GUARD, balls))


def lower_bound(values: ArrayLike, confidence: float = 0.9, *, inequality: Inequality = "chebyshev") -> float:
    """The number of bits that describe the similarities of a share of the items: E(H) + sqrt(D(H) / (1 - p)).

    ``values`` are H_i of each item (n,), see :func:`rmsh.coding.entropy.similarity_entropy`. ``confidence`` is p, above
    1/2 and below 1; the paper gives no value. ``chebyshev`` is the paper's inequality; the one-sided ``cantelli`` is
    tighter: E(H) + sqrt(D(H) p / (1 - p)).

    Example:
        >>> lower_bound([1, 3], 0.75), round(lower_bound([1, 3], 0.75, inequality="cantelli"), 3)
        (4.0, 3.732)
    """
    check_form(inequality, get_args(Inequality))
    if not 0.5 < confidence < 1:
        raise ConfigError(f"The confidence is {confidence}; it must be above 0.5 and below 1, such as 0.9.")
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise InputError(f"The values have shape {array.shape}; give one finite number per item, at least one.")
    share = confidence if inequality == "cantelli" else 1.0
    return float(array.mean() + math.sqrt(array.var() * share / (1 - confidence)))  # var: population, 1/n


def check_delta(delta: float, bits: int) -> float:
    """Return a delta set by the user if it is in range; it need not be whole, as the loss is relaxed."""
    if not 0 < delta <= bits:
        raise ConfigError(f"delta is {delta}; it must be above 0 and at most {bits}; omit it to have it chosen.")
    return delta


def choose_delta(
    labels: LabelArray | LabelStatistics, bits: int, *, confidence: float = 0.9, inequality: Inequality = "chebyshev"
) -> DeltaChoice:
    """Choose delta from the labels by the policy at the top of this file.

    ``labels`` are 0/1 (n, classes), where items without labels are ignored; or their ``LabelStatistics``, to share the
    work between several code lengths. ``confidence`` and ``inequality`` are those of :func:`lower_bound`.

    Example:
        >>> choice = choose_delta(np.eye(4, dtype=np.uint8), 16)
        >>> choice.delta, choice.feasible, choice.used.lower, choice.used.upper
        (3, True, 1.0, 4)
    """
    statistics = labels if isinstance(labels, LabelStatistics) else LabelStatistics.of(labels)
    tried: list[Bounds] = []
    for upper_form, lower_form in itertools.product(UPPER_FORMS, LOWER_FORMS):  # steps 1 to 6; "literal" takes seconds
        upper = upper_bound(bits, statistics.entropy(upper_form[0]), form=upper_form[1])
        lower = lower_bound(statistics.similarity(lower_form), confidence, inequality=inequality)
        tried.append(Bounds(lower, lower_form, upper, upper_form))
        if tried[-1].feasible:
            break
    return DeltaChoice(bits, tried[-1].delta, used=tried[-1], paper=tried[0])
