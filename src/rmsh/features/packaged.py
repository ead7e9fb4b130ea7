"""Encoders whose weights come in a package: one of a kind, known by the hashes of its files and its preprocessing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Self

from rmsh.features.base import refuse_others
from rmsh.features.weights import WEIGHTS

__all__ = ["PackagedEncoder"]


class PackagedEncoder:
    """An encoder that needs no data and no options; a subclass says what its features are made of."""

    name: ClassVar[str]
    weights: ClassVar[tuple[str, ...]]  # names in WEIGHTS
    preprocessing: ClassVar[str]  # what, beside the weights, decides the features

    @property
    def fingerprint(self) -> str:
        """Of the source weights and the preprocessing."""
        parts = [WEIGHTS[name].sha256 for name in self.weights]
        return sha256("\n".join([*parts, self.preprocessing]).encode()).hexdigest()[:16]

    @classmethod
    def prepare(cls, items: Sequence[str]) -> Self:  # noqa: ARG003  # it looks at no data
        """Needs nothing of the training items."""
        return cls()

    def describe(self) -> dict[str, Any]:
        """Name and fingerprint."""
        return {"name": self.name, "fingerprint": self.fingerprint}

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Self:
        """The same encoder, if the weights at hand are the same."""
        encoder = cls()
        refuse_others(description, fingerprint=encoder.fingerprint)
        return encoder
