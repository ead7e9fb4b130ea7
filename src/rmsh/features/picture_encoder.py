"""What all encoders of pictures share: pictures are read and encoded side by side, and bad ones are named."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rmsh.errors import DataError
from rmsh.features.base import Unreadable, refuse
from rmsh.progress import OnProgress, Progress, ignore

if TYPE_CHECKING:
    from rmsh.features.pictures import Picture
    from rmsh.types import FloatArray, Modality

__all__ = ["PictureEncoder"]


class PictureEncoder(ABC):
    """Turns pictures into features, a few at a time in each of several threads.

    Decoders and networks release the interpreter's lock, so that one thread reads while another computes; no queue
    stands between.
    """

    modality: ClassVar[Modality] = "image"
    batch: ClassVar[int] = 1  # pictures that pass the network together

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of features."""

    @abstractmethod
    def _read(self, picture: Picture) -> Any:
        """A picture as the network takes it; raises DataError where it cannot be read."""

    @abstractmethod
    def _embed(self, pictures: Sequence[Any]) -> FloatArray:
        """The network: features, float32 (n, dim)."""

    def encode(self, items: Sequence[Any], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, dim), of pictures given as paths, bytes of files, or open pictures.

        Raises:
            DataError: some cannot be read; the message names the first ten.
        """
        features, unreadable = self.encode_readable(items, on_progress=on_progress)
        if unreadable:
            refuse(unreadable)
        return features

    def encode_readable(
        self, items: Sequence[Any], *, on_progress: OnProgress = ignore
    ) -> tuple[FloatArray, list[Unreadable]]:
        """Features, with zeros for pictures that cannot be read, and which those are."""
        start = time.perf_counter()
        features = np.zeros((len(items), self.dim), dtype=np.float32)
        unreadable: list[Unreadable] = []
        for first, part, reasons in self._parts(items):
            good = [row for row in range(first, first + len(reasons)) if reasons[row - first] is None]
            features[good] = part
            unreadable += [Unreadable(first + i, reason) for i, reason in enumerate(reasons) if reason is not None]
            done = first + len(reasons)
            on_progress(Progress("encode pictures", done, len(items), "picture", time.perf_counter() - start))
        return features, unreadable

    def _parts(self, items: Sequence[Any]) -> Iterator[tuple[int, FloatArray, list[str | None]]]:
        """The first row, the features of those that could be read, and for each picture why not; in order."""
        starts = range(0, len(items), self.batch)
        if len(starts) == 1:  # a query starts no threads
            yield 0, *self._encode_part(items)
            return
        pool = ThreadPoolExecutor(_processors(), thread_name_prefix="rmsh-pictures")
        try:
            parts = (items[first : first + self.batch] for first in starts)
            for first, (features, reasons) in zip(starts, pool.map(self._encode_part, parts), strict=True):
                yield first, features, reasons
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode_part(self, items: Sequence[Any]) -> tuple[FloatArray, list[str | None]]:
        read: list[Any] = []
        reasons: list[str | None] = []
        for item in items:
            try:
                read.append(self._read(item))
                reasons.append(None)
            except DataError as error:
                reasons.append(str(error))
        return (self._embed(read) if read else np.empty((0, self.dim), np.float32)), reasons


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
