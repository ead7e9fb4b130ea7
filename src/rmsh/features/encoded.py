"""Features of items, some of which may be missing or unreadable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rmsh.features.base import TolerantEncoder, Unreadable
from rmsh.progress import OnProgress, ignore

if TYPE_CHECKING:
    from rmsh.features.base import Encoder
    from rmsh.types import BitArray, Features, IntArray

__all__ = ["Encoded", "encode_now"]


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
