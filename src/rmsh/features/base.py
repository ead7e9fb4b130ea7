"""The contract of an encoder: raw items in, features out, frozen.

An encoder is made by ``prepare`` (which may look at training items, as a bag of words does for its vocabulary),
described by plain JSON values, and made again from that description; a model folder keeps the description, so that new
items are encoded exactly as the training items were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from rmsh.progress import OnProgress
    from rmsh.types import Features, Modality

__all__ = ["Encoder"]


class Encoder(Protocol):
    """Turns raw items of one modality into features."""

    name: ClassVar[str]
    modality: ClassVar[Modality]

    @property
    def dim(self) -> int:
        """The number of features."""
        ...

    @property
    def fingerprint(self) -> str:
        """Names weights and preprocessing: equal fingerprints give equal features."""
        ...

    @classmethod
    def prepare(cls, items: Sequence[str]) -> Self:
        """Make an encoder for data like these training items."""
        ...

    def describe(self) -> dict[str, Any]:
        """Plain values from which :meth:`restore` makes the same encoder."""
        ...

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Self:
        """Undo :meth:`describe`.

        Raises:
            FormatError: the weights at hand are not those of the description.
        """
        ...

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ...) -> Features:
        """Features of items, (n, dim): dense float32, or CSR."""
        ...
