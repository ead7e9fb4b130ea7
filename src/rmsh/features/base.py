"""The contract of an encoder: raw items in, features out, frozen.

An encoder is made by ``prepare`` (which may look at training items, as a bag of words does for its vocabulary),
described by plain JSON values, and made again from that description; a model folder keeps the description, so that new
items are encoded exactly as the training items were.

An encoder of sparse features says ``sparse = True``: they are made faster than they are read, and not kept on disk.

A text always has features. A picture may be unreadable: ``encode`` refuses it, and a :class:`TolerantEncoder` can also
go on without it and say which it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

from rmsh.errors import DataError, FormatError

if TYPE_CHECKING:
    from rmsh.progress import OnProgress
    from rmsh.types import Features, FloatArray, Modality

__all__ = ["Encoder", "TolerantEncoder", "Unreadable", "refuse", "refuse_others"]

_MOST_NAMED = 10  # unreadable items in one message


class Encoder(Protocol):
    """Turns raw items of one modality into features."""

    modality: ClassVar[Modality]

    @property
    def name(self) -> str:
        """What it is asked for by, such as ``minilm`` or ``timm:resnet152``."""
        ...

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


@dataclass(frozen=True)
class Unreadable:
    """An item without features: its row, and why, in words that name it."""

    row: int
    reason: str


@runtime_checkable
class TolerantEncoder(Protocol):
    """An encoder that goes on when an item cannot be read."""

    def encode_readable(
        self, items: Sequence[Any], *, on_progress: OnProgress = ...
    ) -> tuple[FloatArray, list[Unreadable]]:
        """Features of items, zeros where one cannot be read, and which those are."""
        ...


def refuse(unreadable: Sequence[Unreadable]) -> None:
    """Stop over items that cannot be read.

    Raises:
        DataError: the message gives the first ten.
    """
    more = f" And {len(unreadable) - _MOST_NAMED} more." if len(unreadable) > _MOST_NAMED else ""
    raise DataError(" ".join(one.reason for one in unreadable[:_MOST_NAMED]) + more)


def refuse_others(description: Mapping[str, Any], *, fingerprint: str) -> None:
    """Refuse a description whose features another encoder of the same name made.

    Raises:
        FormatError: the fingerprints differ.
    """
    if description["fingerprint"] != fingerprint:
        raise FormatError(
            f"The features were made by {description['name']} {description['fingerprint']}, at hand is {fingerprint}; "
            "install the version that made them, or train anew."
        )
