"""The contract of an encoder: raw items in, features out, frozen.

``prepare`` creates an encoder (a bag of words takes its vocabulary from the training items), ``describe`` returns plain
JSON values, and ``restore`` creates the same encoder from them. A model folder stores the description, so that new
items are encoded exactly like the training items.

An encoder of sparse features sets ``sparse = True``: they are computed faster than they are read, and so not cached.

A text always has features. An image may be unreadable: ``encode`` raises an error then. An encoder that can continue
without it has a method ``encode_readable`` too, which returns the features, with zeros for items that cannot be read,
and a list of :class:`Unreadable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from scipy import sparse

from rmsh.core.errors import DataError, FormatError, ImageLimitError
from rmsh.core.progress import OnProgress, ignore

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, Features, IntArray, Modality

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
        """Undo :meth:`describe`.

        Raises:
            FormatError: the installed weights are not those of the description.
        """

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ...) -> Features:
        """Features of items, (n, dim): dense float32, or CSR."""


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


def check_fingerprint(description: Mapping[str, Any], fingerprint: str) -> None:
    """Raise FormatError if the encoder of a description is not the installed one of the same name."""
    if description["fingerprint"] != fingerprint:
        raise FormatError(
            f"The features were computed with {description['name']} {description['fingerprint']}, but the installed "
            f"version is {fingerprint}; install the version that computed them, or train again."
        )


@dataclass(frozen=True, eq=False)
class Encoded:
    """Features (n, dim), with zeros for items that have none, and the items that could not be read."""

    features: Features
    unreadable: tuple[Unreadable, ...] = ()


def encode_now(
    encoder: Encoder, items: Sequence[Any], *, present: BitArray | None = None, on_progress: OnProgress = ignore
) -> Encoded:
    """Encode items in this process, without a cache; rows that are not ``present`` get zeros."""
    n, rows = len(items), None if present is None or present.all() else np.flatnonzero(present)
    if rows is not None:
        items = [items[row] for row in rows.tolist()]
    unreadable: list[Unreadable] = []
    if hasattr(encoder, "encode_readable"):
        features, unreadable = encoder.encode_readable(items, on_progress=on_progress)
    else:
        features = encoder.encode(items, on_progress=on_progress)
    if rows is None:
        return Encoded(features, tuple(unreadable))
    return Encoded(_spread(features, rows, n), tuple(replace(one, row=int(rows[one.row])) for one in unreadable))


def _spread(features: Features, rows: IntArray, n: int) -> Features:
    """Move features to the given rows of ``n``, with zeros between them; sparse stays sparse."""
    if isinstance(features, np.ndarray):
        spread = np.zeros((n, features.shape[1]), dtype=np.float32)
        spread[rows] = features
        return spread
    ends = np.zeros(n + 1, dtype=np.int64)
    ends[rows + 1] = np.diff(features.indptr)
    return sparse.csr_array((features.data, features.indices, ends.cumsum()), shape=(n, features.shape[1]))
