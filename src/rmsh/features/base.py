"""The contract of an encoder: raw items in, features out, frozen.

``prepare`` creates an encoder (a bag of words takes its vocabulary from the training items), ``describe`` returns plain
JSON values, and ``restore`` creates the same encoder from them. A model folder stores the description, so that new
items are encoded exactly like the training items.

An encoder of sparse features sets ``sparse = True``: they are computed faster than they are read, and so not cached.

A text always has features. An image may be unreadable: ``encode`` raises an error then. An encoder that can continue
without it has a method ``encode_readable`` too, which returns the features, with zeros for items that cannot be read,
and a list of :class:`Unreadable`.

An encoder may have a faster way to encode what is searched for, a method ``encode_queries``, if its features can be
compared with those of ``encode``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from rmsh.core.errors import DataError, ImageLimitError

if TYPE_CHECKING:
    from rmsh.core.progress import OnProgress
    from rmsh.core.types import Features, Modality

_MOST_NAMED = 10  # unreadable items in one message


class Encoder(Protocol):
    """Turns raw items of one modality into features."""

    modality: ClassVar[Modality]

    @property
    def name(self) -> str:
        """Name by which users select it, such as ``minilm`` or ``timm:resnet152``."""

    @property
    def dim(self) -> int:
        """Number of features."""

    @property
    def fingerprint(self) -> str:
        """Identifies weights and preprocessing: equal fingerprints give equal features."""

    @classmethod
    def prepare(cls, items: Sequence[str]) -> Self:
        """Create an encoder for data like these training items."""

    def describe(self) -> dict[str, Any]:
        """Plain values from which :meth:`restore` creates the same encoder."""

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Self:
        """Undo :meth:`describe`; the caller compares the fingerprints."""

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ...) -> Features:
        """Features of items, (n, dim): dense float32, or CSR."""


def encode_queries(encoder: Encoder, items: Sequence[Any]) -> Features:
    """Features of items that are searched for, in the faster way if the encoder has one."""
    features: Features = getattr(encoder, "encode_queries", encoder.encode)(items)
    return features


@dataclass(frozen=True)
class Unreadable:
    """The row of an item that has no features, and a reason that names the item."""

    row: int
    reason: str
    exceeds_limit: bool = False  # an image that takes too much time, memory or pixels, rather than a damaged file


def refuse(unreadable: Sequence[Unreadable]) -> None:
    """Raise ImageLimitError if all items exceed a limit, otherwise DataError; the message gives the first ten."""
    kind = ImageLimitError if all(one.exceeds_limit for one in unreadable) else DataError
    more = f" And {len(unreadable) - _MOST_NAMED} more." if len(unreadable) > _MOST_NAMED else ""
    raise kind(" ".join(one.reason for one in unreadable[:_MOST_NAMED]) + more)
