"""A process that encodes words in shards: tests start it, and kill it. Words whose length is odd are unreadable."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import FloatArray, Modality
from rmsh.features.base import Unreadable
from rmsh.features.extract import encode_items


class Lengths:
    """Encodes a word as its length and its number of e, and writes the encoded words to a log file."""

    name: ClassVar[str] = "lengths"
    modality: ClassVar[Modality] = "image"
    dim = 2
    fingerprint = "0"

    def __init__(self, log: Path | None = None, *, stop_at: str = "") -> None:
        self.log, self.stop_at = log, stop_at

    @classmethod
    def prepare(cls, items: Sequence[str]) -> Self:
        return cls()

    def describe(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Self:
        return cls()

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ignore) -> FloatArray:
        return np.array([[len(word), word.count("e")] for word in items], dtype=np.float32).reshape(-1, 2)

    def encode_readable(
        self, items: Sequence[str], *, on_progress: OnProgress = ignore
    ) -> tuple[FloatArray, list[Unreadable]]:
        if self.log is not None:
            with self.log.open("a") as log:
                log.write("".join(f"{os.getpid()} {word}\n" for word in items))
        if self.stop_at in items:
            sys.stdout.write("holding\n")
            sys.stdout.flush()
            time.sleep(600)  # until somebody kills this process
        features, odd = self.encode(items), [row for row, word in enumerate(items) if len(word) % 2]
        features[odd] = 0
        return features, [Unreadable(row, f"{items[row]} is odd") for row in odd]


def words(n: int) -> list[str]:
    """e, ee, eee and so on: the row can be seen from the word."""
    return ["e" * (row + 1) for row in range(n)]


if __name__ == "__main__":
    folder, count, stop_at = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    encode_items(Lengths(folder / "log.txt", stop_at=stop_at), words(count), cache=folder, shard=4)
