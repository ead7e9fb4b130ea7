"""What a choice of delta is: the bounds it is from, and a sentence that tells the user about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from rmsh.coding.entropy import LabelEntropyForm, SimilarityForm

__all__ = ["GUARD", "BallForm", "Bounds", "DeltaChoice", "UpperForm"]

BallForm: TypeAlias = Literal["entropy", "gilbert-varshamov"]
UpperForm: TypeAlias = tuple[LabelEntropyForm, BallForm]

# Bounds are compared with whole numbers; one that is missed by rounding errors only is not missed.
GUARD = 1e-9

_LOWER_WORDS: dict[SimilarityForm, str] = {"size": "|l_i|", "log2": "log2|l_i|", "literal": "H_i estimated"}
_UPPER_WORDS: dict[UpperForm, str] = {
    ("independent", "entropy"): "independent H(L)",
    ("joint", "gilbert-varshamov"): "joint H(L), exact Gilbert-Varshamov sum",
}


@dataclass(frozen=True)
class Bounds:
    """A lower and an upper bound of delta, and the forms they are from.

    Args:
        lower: the lower bound.
        lower_form: the form of H_i it is from.
        upper: the upper bound, or None where the labels hold more bits than a code.
        upper_form: the forms of H(L) and of the Hamming ball it is from.
    """

    lower: float
    lower_form: SimilarityForm
    upper: int | None
    upper_form: UpperForm

    @property
    def feasible(self) -> bool:
        """Whether a delta lies between the two."""
        return self.upper is not None and self.lower <= self.upper + GUARD

    def to_json(self) -> dict[str, Any]:
        """The bounds as plain values."""
        return asdict(self) | {"upper_form": list(self.upper_form), "feasible": self.feasible}

    def __str__(self) -> str:
        upper = "none" if self.upper is None else self.upper
        return f"{self.lower:.2f} ({_LOWER_WORDS[self.lower_form]}) and {upper} ({_UPPER_WORDS[self.upper_form]})"


@dataclass(frozen=True)
class DeltaChoice:
    """A delta, and how it came about.

    Args:
        bits: the length of a code.
        delta: the minimum distance to ask for, 1 to ``bits``.
        used: the bounds it is from, those of the step of the ladder that was reached.
        paper: the bounds in the paper's form.

    Example:
        >>> paper = Bounds(2.5, "size", 6, ("independent", "entropy"))
        >>> DeltaChoice(16, 4, used=paper, paper=paper).reason
        "the middle of the paper's bounds, 2.50 (|l_i|) and 6 (independent H(L))."
    """

    bits: int
    delta: int
    used: Bounds
    paper: Bounds

    @property
    def feasible(self) -> bool:
        """Whether some form of the bounds allows delta."""
        return self.used.feasible

    @property
    def reason(self) -> str:
        """A sentence that tells the user where delta is from."""
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
        """The choice as plain values."""
        choice = {"bits": self.bits, "delta": self.delta, "feasible": self.feasible, "reason": self.reason}
        return choice | {"used": self.used.to_json(), "paper": self.paper.to_json()}
