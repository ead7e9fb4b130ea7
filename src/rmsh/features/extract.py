"""Raw images and texts to features: :func:`encode_pairs` encodes once and caches the result.

The features of ``NAME.npy`` are encoded in shards, in the folder ``NAME.shards``, each of which is written atomically:
work that was interrupted goes on with the next shard. When all shards exist, they are concatenated and the folder is
removed. An executor divides the shards among processes or machines.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from rmsh.core.errors import ConfigError, FormatError, InputError
from rmsh.core.files import atomic, read_json, write_json
from rmsh.core.locks import try_lock
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import Features, IntArray, Modality
from rmsh.data.records import Part, Skipped
from rmsh.features import ENCODERS
from rmsh.features.base import Encoder, Unreadable, refuse
from rmsh.features.executors import Executor, Task, run
from rmsh.features.weights import locate

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs

OnSkipped: TypeAlias = Callable[[Sequence[Skipped]], None]

_ITEMS = {"image": 256, "text": 4096}  # of a shard: a few seconds of work
_PAUSE = 0.1  # seconds between checks whether another process has finished


def prepare(name: str, pairs: Pairs, *, modality: Modality, rows: IntArray) -> Encoder:
    """Create an encoder by name, prepared on training rows of a raw column; ConfigError if it cannot encode it."""
    kind, model = check_encoder(name, modality)
    items = np.asarray(pairs.column(modality))[rows[pairs.has(modality)[rows]]]
    encoder: Encoder = kind(model) if model else kind.prepare(items.tolist())
    return encoder


def check_encoder(name: str, modality: Modality) -> tuple[Any, str]:
    """The class of an encoder of images or of texts, and the name of its model; ConfigError if there is none."""
    kind, model = _kind(name)
    other = f"{name.partition(':')[0]}-{modality}:NAME"
    if kind.modality != modality and other in ENCODERS.names():
        kind = ENCODERS.load(other)  # the text encoder that belongs to an image encoder, as with CLIP
    if kind.modality != modality:
        raise ConfigError(f"{name} encodes {kind.modality}s and cannot encode {modality}s; choose another encoder.")
    return kind, model


def restore(description: Mapping[str, Any]) -> Encoder:
    """Create the encoder that a model's description names; FormatError if its weights are others now."""
    try:
        kind, model = _kind(description["name"])
        encoder: Encoder = kind(model) if model else kind.restore(description)
        trained_with = description.get("fingerprint", encoder.fingerprint)  # other packages may leave it out
    except (AttributeError, KeyError, TypeError) as error:
        raise FormatError(f"The model has a damaged description of an encoder ({error!r}); restore it.") from error
    if encoder.fingerprint != trained_with:
        found = f"Features are those of {encoder.name} {trained_with}, but {encoder.fingerprint} is installed"
        raise FormatError(f"{found}; install the version that computed them, or train again.")
    return encoder


def _kind(name: str) -> tuple[Any, str]:
    """The class of an encoder, and the name of a model after the colon, if there is one."""
    library, colon, model = name.partition(":")
    return ENCODERS.load(f"{library}:NAME" if colon and model else name), model


class Encoded(NamedTuple):
    """Features (n, dim), with zeros for items that have none, and the items that could not be read."""

    features: Features
    unreadable: Sequence[Unreadable]


def encode_pairs(
    pairs: Pairs,
    encoders: Mapping[Modality, Encoder],
    *,
    cache: Path | None = None,
    executor: Executor | None = None,
    on_skipped: OnSkipped | None = None,
    on_progress: OnProgress = ignore,
) -> Pairs:
    """Replace the raw column of each encoder's modality by features.

    ``cache`` is a folder that keeps dense features, which an ``executor`` needs. ``on_skipped`` is called with the
    images that cannot be read, which then count as missing; if it is None, they raise a DataError.
    """
    skipped: list[Skipped] = []
    for modality, encoder in encoders.items():
        column, present = np.asarray(pairs.column(modality)).tolist(), pairs.has(modality).copy()
        items = [item if there else None for item, there in zip(column, present, strict=True)]
        features, unreadable = encode_items(encoder, items, cache=cache, executor=executor, on_progress=on_progress)
        pairs = pairs.with_column(modality, features)
        if unreadable and on_skipped is None:
            refuse(unreadable)
        for one in unreadable:
            left_out: Part = "picture" if pairs.has_text[one.row] else "item"
            skipped.append(Skipped(column[one.row], None, str(pairs.ids[one.row]), left_out, one.reason))
            present[one.row] = False
        if unreadable:
            pairs = replace(pairs, has_image=present) if modality == "image" else replace(pairs, has_text=present)
    if skipped and on_skipped is not None:
        on_skipped(skipped)
    return pairs


def encode_items(
    encoder: Encoder,
    items: Sequence[str | None],
    *,
    cache: Path | None = None,
    shard: int | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress = ignore,
) -> Encoded:
    """Encode items, of which None are missing and get zeros.

    Dense features are kept in ``cache``; if they are there, or another process makes them, nothing is encoded. A
    ``shard`` is a number of items.
    """
    if cache is None or getattr(encoder, "sparse", False):
        return encode_now(encoder, items, on_progress=on_progress)
    path, size, n = cache / file_name(encoder, items), shard or _ITEMS[encoder.modality], len(items)
    folder, listed = path.with_suffix(".shards"), path.with_suffix(".unreadable.json")
    shards = {
        folder / f"{first:010}-{min(first + size, n):010}.npz": slice(first, min(first + size, n))
        for first in range(0, n, size)
    }
    while not path.exists():
        with try_lock(folder / "extraction.claim") as locked:
            if not locked:
                time.sleep(_PAUSE)  # another process encodes the same items
            elif not path.exists():
                missing = {file: rows for file, rows in shards.items() if not file.exists()}
                _encode_missing(encoder, items, missing, executor, on_progress)
                _concatenate(path, shards, listed, shape=(n, encoder.dim))
    shutil.rmtree(folder, ignore_errors=True)
    unreadable = [Unreadable(row, reason) for row, reason in (read_json(listed) if listed.exists() else [])]
    return Encoded(np.load(path, mmap_mode="r"), unreadable)


def file_name(encoder: Encoder, items: Sequence[str | None]) -> str:
    """The name of the features of some items in a cache."""
    digest = sha256(encoder.fingerprint.encode())
    for item in items:
        identity = "\1" if item is None else item
        if item is not None and encoder.modality == "image":
            path = Path(item).absolute()
            identity = " ".join(map(str, (path, *(file_state(path) or ("absent",)))))
        digest.update(identity.encode() + b"\0")
    return f"{encoder.name.replace(':', '-').replace('/', '-')}-{digest.hexdigest()[:16]}.npy"


def file_state(path: Path) -> list[int] | None:
    """Size and time of modification of a file; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


def encode_now(encoder: Encoder, items: Sequence[str | None], *, on_progress: OnProgress = ignore) -> Encoded:
    """Encode items in this process, without a cache."""
    there = {row: item for row, item in enumerate(items) if item is not None}
    unreadable: list[Unreadable] = []
    if hasattr(encoder, "encode_readable"):
        features, unreadable = encoder.encode_readable([*there.values()], on_progress=on_progress)
    else:
        features = encoder.encode([*there.values()], on_progress=on_progress)
    if len(there) == len(items):
        return Encoded(features, unreadable)
    # A product with a matrix of ones at (row, position) moves features to their rows; sparse ones stay sparse.
    rows, ones = [*there], np.ones(len(there), np.float32)
    moved = sparse.csr_array((ones, (rows, range(len(rows)))), shape=(len(items), len(rows)))
    return Encoded(moved @ features, [replace(one, row=rows[one.row]) for one in unreadable])


def _encode_missing(
    encoder: Encoder,
    items: Sequence[str | None],
    missing: Mapping[Path, slice],
    executor: Executor | None,
    on_progress: OnProgress,
) -> None:
    start, done, total = time.perf_counter(), 0, sum(rows.stop - rows.start for rows in missing.values())

    def report(inner: Progress) -> None:
        on_progress(Progress(inner.stage, done + inner.done, total, inner.unit, time.perf_counter() - start))

    if executor is None:
        for file, rows in missing.items():
            _write(file, encode_now(encoder, items[rows], on_progress=report), rows.start)
            done += rows.stop - rows.start
        return
    if encoder.modality == "image":  # workers may be in another folder
        items = [None if item is None else os.path.abspath(item) for item in items]
    job, module = {"encoder": json.dumps(encoder.describe())}, "rmsh.features.extract"
    parts = {file.absolute(): {"first": rows.start, "items": items[rows]} for file, rows in missing.items()}
    tasks = {file.name: {**job, **part, "file": str(file)} for file, part in parts.items()}
    for _, count in run(executor, f"{module}:encode_shard", tasks, check=f"{module}:check_worker"):
        report(Progress(f"encode {encoder.modality}s", count, total, encoder.modality, 0))
        done += count


@lru_cache
def restore_once(description: str) -> Encoder:
    """Like :func:`restore`, from JSON, for workers: the encoder, with checked weights, is kept for the next shard."""
    encoder = restore(json.loads(description))
    for name in getattr(encoder, "weights", ()):
        locate(name)
    return encoder


def check_worker(task: Task) -> bool:
    """Whether a worker has the encoder of a task and sees its folder; FormatError or InputError if not."""
    restore_once(task["encoder"])
    folder = Path(task["file"]).parent
    if not folder.is_dir():
        raise InputError(f"it does not see {folder}; put images and results on a disk that all machines share.")
    return True


def encode_shard(task: Task) -> int:
    """The work of one shard; returns its number of items."""
    _write(Path(task["file"]), encode_now(restore_once(task["encoder"]), task["items"]), task["first"])
    return len(task["items"])


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
