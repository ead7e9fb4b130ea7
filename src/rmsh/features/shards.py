"""Features of many items in shards, made by any number of processes that share a folder.

Beside the file that is wanted, ``NAME.npy``, stands a folder ``NAME.shards``. A process claims a shard, encodes it,
writes it under another name and renames it; one that is killed loses the shard it was at, and nobody else waits for it.
When all shards are there, one process puts them together, and the folder goes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
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

__all__ = ["encode_shared"]

_SHARD = {"image": 256, "text": 4096}  # items: a few seconds of work
_PAUSE = 0.1  # seconds between looks at what other processes have done


def encode_shared(
    encoder: Encoder,
    items: Sequence[Any],
    path: Path,
    *,
    present: BitArray | None = None,
    shard: int | None = None,
    on_progress: OnProgress = ignore,
) -> Encoded:
    """Encode items into a file, together with whoever else does the same; returns when the file is there.

    Args:
        encoder: gives dense features.
        items: raw items, the same in all processes.
        path: of the file, ``NAME.npy``; where it exists nothing is encoded.
        present: which rows there are; the others get zeros. All where None.
        shard: items in one; a few seconds of work where None.
        on_progress: is told how far this process is.
    """
    size = shard or _SHARD[encoder.modality]
    parts = [_Part(path, first, min(first + size, len(items))) for first in range(0, len(items), size)]
    work = _Work(encoder, items, present, on_progress)
    while not path.exists():
        advanced = [work.encode_if_free(part) for part in parts]
        if all(part.file.exists() for part in parts):
            _assemble(path, parts, encoder.dim)
        elif not any(advanced):
            time.sleep(_PAUSE)  # the rest is in the hands of other processes
    shutil.rmtree(_folder(path), ignore_errors=True)
    return Encoded(np.load(path, mmap_mode="r"), tuple(_read_unreadable(path)))


def _folder(path: Path) -> Path:
    return path.with_suffix(".shards")


@dataclass(frozen=True)
class _Part:
    """Rows ``first`` to ``last`` (excluded) of the file at ``path``."""

    path: Path
    first: int
    last: int

    @property
    def file(self) -> Path:
        return _folder(self.path) / f"{self.first:010}-{self.last:010}.npz"

    @property
    def claim(self) -> Path:
        return self.file.with_suffix(".claim")


class _Work:
    """What one process does: encodes parts that nobody has encoded or is encoding."""

    def __init__(
        self, encoder: Encoder, items: Sequence[Any], present: BitArray | None, on_progress: OnProgress
    ) -> None:
        self._encoder, self._items, self._present = encoder, items, present
        self._report, self._start, self._done = on_progress, time.perf_counter(), 0

    def encode_if_free(self, part: _Part) -> bool:
        """Whether this process encoded it."""
        if part.file.exists():
            return False
        with try_lock(part.claim) as mine:
            # Only the holder of the claim knows that nobody has written the part meanwhile.
            if not mine or part.file.exists() or part.path.exists():
                return False
            self._encode(part)
        return True

    def _encode(self, part: _Part) -> None:
        rows = slice(part.first, part.last)
        present = None if self._present is None else self._present[rows]
        encoded = encode_now(self._encoder, self._items[rows], present=present, on_progress=self._tell)
        with atomic(part.file) as file:
            np.savez(
                file,
                features=np.asarray(encoded.features, dtype=np.float32),
                rows=np.array([part.first + one.row for one in encoded.unreadable], dtype=np.int64),
                reasons=np.array([one.reason for one in encoded.unreadable], dtype=np.str_),
            )
        self._done += part.last - part.first

    def _tell(self, inner: Progress) -> None:
        seconds = time.perf_counter() - self._start
        self._report(Progress(inner.stage, self._done + inner.done, len(self._items), inner.unit, seconds))


def _assemble(path: Path, parts: Sequence[_Part], dim: int) -> None:
    """Put the parts together; the file with the features appears last, and with it everything is finished."""
    with try_lock(_folder(path) / "assembly.claim") as mine:
        if not mine or path.exists():
            return
        header = {"descr": "<f4", "fortran_order": False, "shape": (sum(p.last - p.first for p in parts), dim)}
        unreadable: list[Unreadable] = []
        with atomic(path) as file:
            np.lib.format.write_array_header_1_0(file, header)
            for features, more in map(_read_part, parts):
                file.write(features.tobytes())
                unreadable += more
            _write_unreadable(path, unreadable)


def _read_part(part: _Part) -> tuple[FloatArray, Iterator[Unreadable]]:
    with np.load(part.file) as stored:
        rows, reasons = stored["rows"].tolist(), stored["reasons"].tolist()
        return stored["features"].astype("<f4", copy=False), map(Unreadable, rows, reasons)


def _write_unreadable(path: Path, unreadable: Sequence[Unreadable]) -> None:
    if unreadable:
        write_json(path.with_suffix(".unreadable.json"), [[one.row, one.reason] for one in unreadable])


def _read_unreadable(path: Path) -> Iterator[Unreadable]:
    listed = path.with_suffix(".unreadable.json")
    return (Unreadable(row, reason) for row, reason in (read_json(listed) if listed.exists() else []))
