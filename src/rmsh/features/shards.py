"""Encode many items in shards, by any number of processes that share a folder.

The shards of ``NAME.npy`` are in the folder ``NAME.shards``. A process locks a shard, encodes it, writes it under a
temporary name and renames it; a process that is killed loses only its current shard, and no other process waits for it.
When all shards exist, one process concatenates them and removes the folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.files import atomic, read_json, write_json
from rmsh.core.locks import try_lock
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.features.base import Encoded, Unreadable, encode_now

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, FloatArray
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
    size = shard or _ITEMS[encoder.modality]
    shards = [_Shard(path, first, min(first + size, len(items))) for first in range(0, len(items), size)]
    worker = _Worker(encoder, items, present, on_progress)
    while not path.exists():
        advanced = [worker.encode_if_free(shard) for shard in shards]
        if all(shard.file.exists() for shard in shards):
            _concatenate(path, shards, encoder.dim)
        elif not any(advanced):
            time.sleep(_PAUSE)  # other processes encode the rest
    shutil.rmtree(_folder(path), ignore_errors=True)
    listed = _unreadable_file(path)
    unreadable = (Unreadable(row, reason) for row, reason in (read_json(listed) if listed.exists() else []))
    return Encoded(np.load(path, mmap_mode="r"), tuple(unreadable))


def _folder(path: Path) -> Path:
    return path.with_suffix(".shards")


def _unreadable_file(path: Path) -> Path:
    return path.with_suffix(".unreadable.json")


@dataclass(frozen=True)
class _Shard:
    """Rows ``first`` to ``last`` (excluded) of the file at ``path``."""

    path: Path
    first: int
    last: int

    @property
    def file(self) -> Path:
        return _folder(self.path) / f"{self.first:010}-{self.last:010}.npz"


class _Worker:
    """Encodes the shards that no other process has encoded or is encoding."""

    def __init__(
        self, encoder: Encoder, items: Sequence[Any], present: BitArray | None, on_progress: OnProgress
    ) -> None:
        self._encoder, self._items, self._present = encoder, items, present
        self._on_progress, self._start, self._done = on_progress, time.perf_counter(), 0

    def encode_if_free(self, shard: _Shard) -> bool:
        """Whether this process encoded it."""
        if shard.file.exists():
            return False
        with try_lock(shard.file.with_suffix(".claim")) as locked:
            # Another process may have written the shard before this one got the lock.
            if not locked or shard.file.exists() or shard.path.exists():
                return False
            self._encode(shard)
        return True

    def _encode(self, shard: _Shard) -> None:
        rows = slice(shard.first, shard.last)
        present = None if self._present is None else self._present[rows]
        encoded = encode_now(self._encoder, self._items[rows], present=present, on_progress=self._report)
        with atomic(shard.file) as file:
            np.savez(
                file,
                features=np.asarray(encoded.features, dtype=np.float32),
                rows=np.array([shard.first + one.row for one in encoded.unreadable], dtype=np.int64),
                reasons=np.array([one.reason for one in encoded.unreadable], dtype=np.str_),
            )
        self._done += shard.last - shard.first

    def _report(self, inner: Progress) -> None:
        seconds = time.perf_counter() - self._start
        self._on_progress(Progress(inner.stage, self._done + inner.done, len(self._items), inner.unit, seconds))


def _concatenate(path: Path, shards: Sequence[_Shard], dim: int) -> None:
    """Write all shards into one file, which appears last: when it exists, everything is finished."""
    with try_lock(_folder(path) / "assembly.claim") as locked:
        if not locked or path.exists():
            return
        header = {"descr": "<f4", "fortran_order": False, "shape": (sum(s.last - s.first for s in shards), dim)}
        unreadable: list[tuple[int, str]] = []
        with atomic(path) as file:
            np.lib.format.write_array_header_1_0(file, header)
            for shard in shards:
                features, more = _read(shard)
                file.write(features.tobytes())
                unreadable += more
            if unreadable:
                write_json(_unreadable_file(path), unreadable)


def _read(shard: _Shard) -> tuple[FloatArray, list[tuple[int, str]]]:
    with np.load(shard.file) as stored:
        unreadable = list(zip(stored["rows"].tolist(), stored["reasons"].tolist(), strict=True))
        return stored["features"].astype("<f4", copy=False), unreadable
