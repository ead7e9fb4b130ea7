"""The contract of an encoder: raw items in, features out, frozen.

An encoder is made by ``prepare`` (which may look at training items, as a bag of words does for its vocabulary),
described by plain JSON values, and made again from that description; a model folder keeps the description, so that new
items are encoded exactly as the training items were.

An encoder of sparse features says ``sparse = True``: they are made faster than they are read, and not kept on disk.

A text always has features. A picture may be unreadable: ``encode`` refuses it, and a :class:`TolerantEncoder` can also
go on without it and say which it was.

Features of items, some of which may be missing or unreadable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from scipy import sparse

from rmsh.core.errors import DataError, FormatError, ImageLimitError
from rmsh.core.progress import OnProgress, ignore

if TYPE_CHECKING:
    from rmsh.core.progress import OnProgress
    from rmsh.core.types import BitArray, Features, FloatArray, IntArray, Modality

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
    exceeds_limit: bool = False  # an image that takes too much time, memory or pixels, rather than a damaged file


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
        ImageLimitError: all of them exceed a limit.
        DataError: the message gives the first ten.
    """
    kind = ImageLimitError if all(one.exceeds_limit for one in unreadable) else DataError
    more = f" And {len(unreadable) - _MOST_NAMED} more." if len(unreadable) > _MOST_NAMED else ""
    raise kind(" ".join(one.reason for one in unreadable[:_MOST_NAMED]) + more)


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


@dataclass(frozen=True, eq=False)
class Encoded:
    """Features of items.

    Args:
        features: (n, dim), memory-mapped where they are kept on disk; zeros for items that have none.
        unreadable: the items that should have features and have none.
    """

    features: Features
    unreadable: tuple[Unreadable, ...] = ()


def encode_now(
    encoder: Encoder, items: Sequence[Any], *, present: BitArray | None = None, on_progress: OnProgress = ignore
) -> Encoded:
    """Encode items in this process, with nothing kept on disk.

    Args:
        encoder: what encodes.
        items: raw items.
        present: which rows there are; the others get zeros. All where None.
        on_progress: is told how far it is.
    """
    if present is None or present.all():
        return _encode(encoder, items, on_progress)
    rows: IntArray = np.flatnonzero(present)
    part = _encode(encoder, [items[row] for row in rows.tolist()], on_progress)
    unreadable = tuple(Unreadable(int(rows[one.row]), one.reason) for one in part.unreadable)
    return Encoded(_spread(part.features, rows, len(items)), unreadable)


def _encode(encoder: Encoder, items: Sequence[Any], on_progress: OnProgress) -> Encoded:
    if isinstance(encoder, TolerantEncoder):
        features, unreadable = encoder.encode_readable(items, on_progress=on_progress)
        return Encoded(features, tuple(unreadable))
    return Encoded(encoder.encode(items, on_progress=on_progress))


def _spread(features: Features, rows: IntArray, n: int) -> Features:
    """The same rows at their places among ``n``, zeros between them; sparse stays sparse."""
    if isinstance(features, np.ndarray):
        spread = np.zeros((n, features.shape[1]), dtype=np.float32)
        spread[rows] = features
        return spread
    ends = np.zeros(n + 1, dtype=np.int64)
    ends[rows + 1] = np.diff(features.indptr)
    return sparse.csr_array((features.data, features.indices, ends.cumsum()), shape=(n, features.shape[1]))
