"""Raw columns to features: encode once, keep the result, find it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmsh.core.cache import cache_folder
from rmsh.core.errors import ConfigError
from rmsh.core.progress import OnProgress, ignore
from rmsh.features import ENCODERS
from rmsh.features.base import Encoded, Unreadable, encode_now, refuse
from rmsh.features.shards import encode_shared

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, Modality
    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder

__all__ = ["OnUnreadable", "cache_folder", "encode_column", "extract", "prepare", "restore"]

OnUnreadable: TypeAlias = Callable[[Sequence[Unreadable]], None]


def prepare(name: str, pairs: Pairs, *, modality: Modality, rows: IntArray | None = None) -> Encoder:
    """An encoder by name, prepared on the training rows of a raw column.

    Raises:
        ConfigError: there is no such encoder, or it is for the other modality.
    """
    kind, model = _kind(name)
    if kind.modality != modality:
        raise ConfigError(
            f"The encoder {name} was given for {modality}s, but it encodes {kind.modality}s; give another."
        )
    column = np.asarray(pairs.column(modality))
    items = (column if rows is None else column[rows]).tolist()
    encoder: Encoder = kind(model) if model else kind.prepare(items)
    return encoder


def restore(description: Mapping[str, Any]) -> Encoder:
    """The encoder of a model's description."""
    encoder: Encoder = _kind(description["name"])[0].restore(description)
    return encoder


def _kind(name: str) -> tuple[Any, str]:
    """The class of an encoder, and the name of a model after the colon, if there is one."""
    library, colon, model = name.partition(":")
    return ENCODERS.load(f"{library}:NAME" if colon and model else name), model


def extract(
    pairs: Pairs,
    encoder: Encoder,
    *,
    cache: Path | None = None,
    on_unreadable: OnUnreadable = refuse,
    on_progress: OnProgress = ignore,
) -> Pairs:
    """The same pairs with features in place of the raw column of the encoder's modality.

    Args:
        pairs: with a raw column.
        encoder: of that column.
        cache: a folder to keep dense features in; processes that are given the same one share the work.
        on_unreadable: is told of items that cannot be read; if it does not raise, they count as missing.
        on_progress: is told how far it is.
    """
    modality = encoder.modality
    column, present = np.asarray(pairs.column(modality)), pairs.has(modality)
    encoded = encode_column(encoder, column, present=present, cache=cache, on_progress=on_progress)
    with_features = pairs.with_column(modality, encoded.features)
    if not encoded.unreadable:
        return with_features
    on_unreadable(encoded.unreadable)
    left = present.copy()
    left[[one.row for one in encoded.unreadable]] = False
    return replace(with_features, has_image=left) if modality == "image" else replace(with_features, has_text=left)


def encode_column(
    encoder: Encoder,
    items: NDArray[np.str_],
    *,
    present: BitArray | None = None,
    cache: Path | None = None,
    on_progress: OnProgress = ignore,
) -> Encoded:
    """Features of items; dense ones are kept in ``cache`` under a name made of the encoder and the items."""
    if cache is None or getattr(encoder, "sparse", False):
        return encode_now(encoder, items.tolist(), present=present, on_progress=on_progress)
    path = cache / f"{encoder.name.replace(':', '-').replace('/', '-')}-{_digest(encoder, items, present)}.npy"
    return encode_shared(encoder, items.tolist(), path, present=present, on_progress=on_progress)


def _digest(encoder: Encoder, items: NDArray[np.str_], present: BitArray | None) -> str:
    digest = sha256(encoder.fingerprint.encode())
    for row, item in enumerate(items):
        there = present is None or present[row]
        digest.update((_identity(str(item), encoder.modality) if there else "\1").encode() + b"\0")
    return digest.hexdigest()[:16]


def _identity(item: str, modality: Modality) -> str:
    """What an item is known by: a text by itself, a picture by its path and when it was last written."""
    if modality == "text":
        return item
    try:
        status = Path(item).stat()
    except OSError:
        return f"{Path(item).absolute()} absent"
    return f"{Path(item).absolute()} {status.st_size} {status.st_mtime_ns}"
