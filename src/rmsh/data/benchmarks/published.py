"""What the readers of official layouts share: finding files, reading lines as they come, and what they return."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from rmsh.core.errors import DataError

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray
    from rmsh.data.benchmarks.registry import Benchmark
    from rmsh.data.pairs import Pairs

DEEPEST = 2  # how many folders below the root an owner's folder may lie


@dataclass(frozen=True, eq=False)
class Source:
    """A benchmark as its owner publishes it, before anything is removed.

    Args:
        pairs: every item of the owner's list, in its order; images are paths of pictures, or None.
        part: (n,) the owner's part of each item ("train", "val"), or None where there is one part.
        vocabulary: the words of the columns of a bag of words.
        notes: what was found, in sentences.
        inputs: the files whose hashes say which release it was.
        canonical_id: the id of an item from another spelling, such as a file name.
    """

    pairs: Pairs
    part: NDArray[np.str_] | None = None
    vocabulary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()
    canonical_id: Callable[[str], str] = str

    @property
    def worded(self) -> BitArray:
        """(n,) which items have a text with at least one word of the vocabulary."""
        texts: Any = self.pairs.texts
        words: BitArray = np.diff(texts.indptr) > 0 if sparse.issparse(texts) else self.pairs.has_text
        return self.pairs.has_text & words


def find(root: Path, *names: str) -> Path | None:
    """The first of some relative paths that exists under the root or up to two folders below it."""
    for depth in range(DEEPEST + 1):
        for name in names:
            for found in sorted(root.glob("*/" * depth + name)):
                return found
    return None


def missing_files(root: Path, names: Sequence[str], benchmark: Benchmark) -> DataError:
    """What to raise where official files are absent: which, and who publishes them."""
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return DataError(f"{root} lacks {shown}. {benchmark.missing}")


def text_lines(path: Path) -> list[str]:
    """The lines of a text file without line ends and outer blanks; UTF-8, or Latin-1 where it is not."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [line.strip() for line in text.split("\n")]


def bag_of_tags(tags: Iterable[Iterable[str]], vocabulary: Sequence[str]) -> Any:
    """Which words of the vocabulary each item has, CSR float32 (n, words) of zeros and ones.

    Example:
        >>> bag_of_tags([["sky", "sky", "zzz"], []], ["sea", "sky"]).toarray().tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    column = {word: i for i, word in enumerate(vocabulary)}
    rows = [sorted({column[tag] for tag in item if tag in column}) for item in tags]
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter((i for row in rows for i in row), dtype=np.int64, count=ends[-1])
    return csr_of_ones(indices, ends, len(vocabulary))


def csr_of_ones(indices: IntArray, ends: IntArray, words: int) -> Any:
    """A CSR matrix (n, words) of ones at the columns that lie between two ends."""
    ones = np.ones(len(indices), dtype=np.float32)
    return sparse.csr_array((ones, indices, ends), shape=(len(ends) - 1, words))


def pictures(folder: Path | None, names: Sequence[str]) -> tuple[NDArray[np.str_] | None, BitArray | None]:
    """The paths of pictures in a folder and which of them exist; None where the folder has none of them."""
    if folder is None:
        return None, None
    listed = {sub: _file_names(folder / sub) for sub in {os.path.dirname(name) for name in names}}
    present = np.array([os.path.basename(name) in listed[os.path.dirname(name)] for name in names], dtype=np.bool_)
    if not present.any():
        return None, None
    base = folder.resolve()
    return np.array([str(base / name) for name in names], dtype=np.str_), present


def _file_names(folder: Path) -> set[str]:
    return {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
