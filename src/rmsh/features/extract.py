"""Raw images and texts to features: :func:`encode_pairs` encodes once and caches the result.

Processes that use the same cache share the work in shards. The shards of ``NAME.npy`` are in the folder
``NAME.shards``. A process locks a shard, encodes it, writes it under a temporary name and renames it; a process that is
killed loses only its current shard, and no other process waits for it. When all shards exist, one process concatenates
them and removes the folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from rmsh.core.errors import ConfigError, FormatError
from rmsh.core.files import atomic, read_json, write_json
from rmsh.core.locks import try_lock
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.data.records import Part, Skipped
from rmsh.features import ENCODERS
from rmsh.features.base import Encoder, Unreadable, refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, Features, IntArray, Modality
    from rmsh.data.pairs import Pairs

OnSkipped: TypeAlias = Callable[[Sequence[Skipped]], None]

_ITEMS = {"image": 256, "text": 4096}  # of a shard: a few seconds of work
_PAUSE = 0.1  # seconds between checks for what other processes have done


def prepare(name: str, pairs: Pairs, *, modality: Modality, rows: IntArray) -> Encoder:
    """Create an encoder by name, prepared on training rows of a raw column; ConfigError if it cannot encode it."""
    kind, model = _kind(name)
    if kind.modality != modality:
        raise ConfigError(f"{name} encodes {kind.modality}s and cannot encode {modality}s; choose another encoder.")
    items = np.asarray(pairs.column(modality))[rows[pairs.has(modality)[rows]]]
    encoder: Encoder = kind(model) if model else kind.prepare(items.tolist())
    return encoder


def restore(description: Mapping[str, Any]) -> Encoder:
    """Create the encoder that a model's description names; FormatError if its weights are others now."""
    try:
        kind, model = _kind(description["name"])
        encoder: Encoder = kind(model) if model else kind.restore(description)
        trained_with = description.get("fingerprint", encoder.fingerprint)  # other packages may leave it out
    except (AttributeError, KeyError, TypeError) as error:
        raise FormatError(f"The model has a damaged description of an encoder ({error!r}); restore it.") from error
    if encoder.fingerprint != trained_with:
        raise FormatError(
            f"The features were computed with {encoder.name} {trained_with}, but the installed version is "
            f"{encoder.fingerprint}; install the version that computed them, or train again."
        )
    return encoder


def _kind(name: str) -> tuple[Any, str]:
    """The class of an encoder, and the name of a model after the colon, if there is one."""
    library, colon, model = name.partition(":")
    return ENCODERS.load(f"{library}:NAME" if colon and model else name), model


@dataclass(frozen=True, eq=False)
class Encoded:
    """Features (n, dim), with zeros for items that have none, and the items that could not be read."""

    features: Features
    unreadable: tuple[Unreadable, ...] = ()


def encode_pairs(
    pairs: Pairs,
    encoders: Mapping[Modality, Encoder],
    *,
    cache: Path | None = None,
    on_skipped: OnSkipped | None = None,
    on_progress: OnProgress = ignore,
) -> Pairs:
    """Replace the raw column of each encoder's modality by features.

    ``cache`` is a folder that keeps dense features; processes that use the same one share the work. ``on_skipped`` is
    called with the images that cannot be read, which then count as missing; if it is None, they raise a DataError.
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
    # A product with a matrix of ones at (row, position) moves features to their rows; sparse ones stay sparse.
    moved = sparse.csr_array((np.ones(len(rows), np.float32), (rows, np.arange(len(rows)))), shape=(n, len(rows)))
    return Encoded(moved @ features, tuple(replace(one, row=int(rows[one.row])) for one in unreadable))


def encode_shared(
    encoder: Encoder,
    items: Sequence[Any],
    path: Path,
    *,
    present: BitArray | None = None,
    shard: int | None = None,
    on_progress: OnProgress = ignore,
) -> Encoded:
    """Encode items into the file ``NAME.npy``, together with other processes that do the same.

    Returns when the file exists; if it already does, nothing is encoded. The features are dense; rows that are not
    ``present`` get zeros. A ``shard`` is a number of items. Progress is that of this process.
    """
    size, n = shard or _ITEMS[encoder.modality], len(items)
    folder, listed = path.with_suffix(".shards"), path.with_suffix(".unreadable.json")
    shards = {
        folder / f"{first:010}-{min(first + size, n):010}.npz": slice(first, min(first + size, n))
        for first in range(0, n, size)
    }
    start, done = time.perf_counter(), 0

    def report(inner: Progress) -> None:
        on_progress(Progress(inner.stage, done + inner.done, n, inner.unit, time.perf_counter() - start))

    while not path.exists():
        before = done
        for file, rows in shards.items():
            if file.exists():
                continue
            with try_lock(file.with_suffix(".claim")) as locked:
                # Another process may have written the shard before this one got the lock.
                if not locked or file.exists() or path.exists():
                    continue
                there = None if present is None else present[rows]
                _write(file, encode_now(encoder, items[rows], present=there, on_progress=report), rows.start)
                done += rows.stop - rows.start
        if all(file.exists() for file in shards):
            with try_lock(folder / "assembly.claim") as locked:
                if locked and not path.exists():
                    _concatenate(path, shards, listed, shape=(n, encoder.dim))
        elif done == before:
            time.sleep(_PAUSE)  # other processes encode the rest
    shutil.rmtree(folder, ignore_errors=True)
    unreadable = (Unreadable(row, reason) for row, reason in (read_json(listed) if listed.exists() else []))
    return Encoded(np.load(path, mmap_mode="r"), tuple(unreadable))


def _write(shard: Path, encoded: Encoded, first: int) -> None:
    with atomic(shard) as file:
        np.savez(
            file,
            features=np.asarray(encoded.features, dtype=np.float32),
            rows=np.array([first + one.row for one in encoded.unreadable], dtype=np.int64),
            reasons=np.array([one.reason for one in encoded.unreadable], dtype=np.str_),
        )


def _concatenate(path: Path, shards: Iterable[Path], listed: Path, *, shape: tuple[int, int]) -> None:
    """Write all shards into one file, which appears last: when it exists, everything is finished."""
    unreadable: list[tuple[int, str]] = []
    with atomic(path) as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        for shard in shards:
            with np.load(shard) as stored:
                file.write(stored["features"].astype("<f4", copy=False).tobytes())
                unreadable += zip(stored["rows"].tolist(), stored["reasons"].tolist(), strict=True)
        if unreadable:
            write_json(listed, unreadable)
