"""Encode many items in shards, by any number of processes that share a folder.

The shards of ``NAME.npy`` are in the folder ``NAME.shards``. A process locks a shard, encodes it, writes it under a
temporary name and renames it; a process that is killed loses only its current shard, and no other process waits for it.
When all shards exist, one process concatenates them and removes the folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.files import atomic, read_json, write_json
from rmsh.core.locks import try_lock
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.features.base import Encoded, Unreadable, encode_now

if TYPE_CHECKING:
    from rmsh.core.types import BitArray
    from rmsh.features.base import Encoder

_ITEMS = {"image": 256, "text": 4096}  # of a shard: a few seconds of work
_PAUSE = 0.1  # seconds between checks for what other processes have done


def encode_shared(
    encoder: Encoder,
    items: Sequence[Any],
    path: Path,
    *,
    present: BitArray | None = None,
    shard: int | None = None,
    on_progress: OnProgress = ignore,
) -> Encoded:
    """Encode items into a file, together with other processes that do the same; returns when the file exists.

    Args:
        encoder: gives dense features.
        items: raw items, the same in all processes.
        path: of the file, ``NAME.npy``; if it exists, nothing is encoded.
        present: which rows exist; the others get zeros. All if None.
        shard: items per shard.
        on_progress: called with a Progress of this process.
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
