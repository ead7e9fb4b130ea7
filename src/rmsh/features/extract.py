"""Raw images and texts to features: :func:`encode_pairs` encodes once and caches the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmsh.core.errors import ConfigError, FormatError
from rmsh.core.progress import OnProgress, ignore
from rmsh.data.records import Part, Skipped
from rmsh.features import ENCODERS
from rmsh.features.base import Encoded, encode_now, refuse
from rmsh.features.shards import encode_shared

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, Modality
    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder

OnSkipped: TypeAlias = Callable[[Sequence[Skipped]], None]


def prepare(name: str, pairs: Pairs, *, modality: Modality, rows: IntArray) -> Encoder:
    """Create an encoder by name, prepared on training rows of a raw column.

    Raises:
        ConfigError: the encoder does not exist, or is for the other modality.
    """
    kind, model = _kind(name)
    if kind.modality != modality:
        raise ConfigError(f"{name} encodes {kind.modality}s and cannot encode {modality}s; choose another encoder.")
    items = np.asarray(pairs.column(modality))[rows[pairs.has(modality)[rows]]]
    encoder: Encoder = kind(model) if model else kind.prepare(items.tolist())
    return encoder


def restore(description: Mapping[str, Any]) -> Encoder:
    """Create the encoder that a model's description names."""
    try:
        encoder: Encoder = _kind(description["name"])[0].restore(description)
    except (AttributeError, KeyError, TypeError) as error:
        raise FormatError(f"The model has a damaged description of an encoder ({error!r}); restore it.") from error
    return encoder


def _kind(name: str) -> tuple[Any, str]:
    """The class of an encoder, and the name of a model after the colon, if there is one."""
    library, colon, model = name.partition(":")
    return ENCODERS.load(f"{library}:NAME" if colon and model else name), model


def encode_pairs(
    pairs: Pairs,
    encoders: Mapping[Modality, Encoder],
    *,
    cache: Path | None = None,
    on_skipped: OnSkipped | None = None,
    on_progress: OnProgress = ignore,
) -> Pairs:
    """Replace raw columns of pairs by features.

    Args:
        pairs: with a raw column for each encoder; other columns stay as they are.
        encoders: by modality.
        cache: folder that keeps dense features; processes that use the same one share the work.
        on_skipped: called with the images that cannot be read, which then count as missing; if None, they are an error.
        on_progress: called with a Progress.

    Raises:
        DataError: an image cannot be read, and ``on_skipped`` is None.
    """
    skipped: list[Skipped] = []
    for modality, encoder in encoders.items():
        column, present = np.asarray(pairs.column(modality)), pairs.has(modality)
        encoded = encode_column(encoder, column, present=present, cache=cache, on_progress=on_progress)
        pairs = pairs.with_column(modality, encoded.features)
        if encoded.unreadable and on_skipped is None:
            refuse(encoded.unreadable)
        for one in encoded.unreadable:
            left_out: Part = "picture" if pairs.has_text[one.row] else "item"
            skipped.append(Skipped(str(column[one.row]), None, str(pairs.ids[one.row]), left_out, one.reason))
        if encoded.unreadable:
            left = present.copy()
            left[[one.row for one in encoded.unreadable]] = False
            pairs = replace(pairs, has_image=left) if modality == "image" else replace(pairs, has_text=left)
    if skipped and on_skipped is not None:
        on_skipped(skipped)
    return pairs


def encode_column(
    encoder: Encoder,
    items: NDArray[np.str_],
    *,
    present: BitArray | None = None,
    cache: Path | None = None,
    on_progress: OnProgress = ignore,
) -> Encoded:
    """Encode items; dense features are kept in ``cache`` under a name derived from the encoder and the items."""
    if cache is None or getattr(encoder, "sparse", False):
        return encode_now(encoder, items.tolist(), present=present, on_progress=on_progress)
    path = cache / f"{encoder.name.replace(':', '-').replace('/', '-')}-{_digest(encoder, items, present)}.npy"
    return encode_shared(encoder, items.tolist(), path, present=present, on_progress=on_progress)


def _digest(encoder: Encoder, items: NDArray[np.str_], present: BitArray | None) -> str:
    digest = sha256(encoder.fingerprint.encode())
    for row, item in enumerate(items):
        identity = str(item)
        if present is not None and not present[row]:
            identity = "\1"
        elif encoder.modality == "image":
            path = Path(identity).absolute()
            identity = " ".join(map(str, (path, *(file_state(path) or ("absent",)))))
        digest.update(identity.encode() + b"\0")
    return digest.hexdigest()[:16]


def file_state(path: Path) -> list[int] | None:
    """Size and time of modification of a file; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]
