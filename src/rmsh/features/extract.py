"""Raw columns to features: encode once, keep the result, find it again."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from rmsh.features import ENCODERS
from rmsh.files import atomic
from rmsh.progress import OnProgress, ignore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder
    from rmsh.types import Features, IntArray, Modality

__all__ = ["cache_folder", "encode_column", "extract", "prepare", "restore"]


def prepare(name: str, pairs: Pairs, *, modality: Modality, rows: IntArray | None = None) -> Encoder:
    """An encoder by name, prepared on the training rows of a raw column."""
    column = np.asarray(pairs.column(modality))
    encoder: Encoder = ENCODERS.load(name).prepare((column if rows is None else column[rows]).tolist())
    return encoder


def restore(description: Mapping[str, Any]) -> Encoder:
    """The encoder of a model's description."""
    encoder: Encoder = ENCODERS.load(description["name"]).restore(description)
    return encoder


def extract(pairs: Pairs, encoder: Encoder, *, cache: Path | None = None, on_progress: OnProgress = ignore) -> Pairs:
    """The same pairs with features in place of the raw column of the encoder's modality."""
    column = np.asarray(pairs.column(encoder.modality))
    return pairs.with_column(encoder.modality, encode_column(encoder, column, cache=cache, on_progress=on_progress))


def encode_column(
    encoder: Encoder, items: NDArray[np.str_], *, cache: Path | None = None, on_progress: OnProgress = ignore
) -> Features:
    """Features of items; dense ones are kept in ``cache`` under a name made of the encoder and the items."""
    if cache is None:
        return encoder.encode(items.tolist(), on_progress=on_progress)
    path = cache / f"{encoder.name}-{_digest(encoder, items)}.npy"
    if path.exists():
        return np.load(path, mmap_mode="r")
    features = encoder.encode(items.tolist(), on_progress=on_progress)
    if not sparse.issparse(features):  # a bag of words is made faster than it is read
        with atomic(path) as file:
            np.save(file, features)
    return features


def _digest(encoder: Encoder, items: NDArray[np.str_]) -> str:
    digest = sha256(encoder.fingerprint.encode())
    for item in items:
        digest.update(str(item).encode() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where features are kept: ``RMSH_CACHE``, or ``rmsh`` in the user's cache folder."""
    given = os.environ.get("RMSH_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rmsh"
