"""The parts of every benchmark: its declaration, its split protocols, the data as published, and reading helpers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from rmsh.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray
    from rmsh.data.pairs import Pairs

DEEPEST = 2  # levels below the root at which a published folder is found
IMAGE_WIDTH = 2048  # of the paper's image features (ResNet-152)
SEED_UNKNOWN = (
    "The paper gives neither its random pairs nor a seed; pairs are drawn uniformly with the seed of the split."
)


@dataclass(frozen=True)
class Protocol:
    """How a benchmark is split.

    Args:
        name: the name of the split.
        about: whose protocol it is, in a sentence.
        queries: the number of queries; 0 means a tenth of all pairs.
        database: the number of other pairs in the database; None means all.
        train: the number of database pairs to train on; None means all.
        classes: the number of most frequent classes to use; None means all.
        labelled: remove pairs without a label; queries always have one.
        worded: remove pairs without a word.
        parts: the published part (such as "train") of the database, and that of the queries.
        in_order: take the first rows instead of random ones.
    """

    name: str
    about: str
    queries: int = 0
    database: int | None = None
    train: int | None = None
    classes: int | None = None
    labelled: bool = True
    worded: bool = True
    parts: tuple[str, str] | None = None
    in_order: bool = False


TENTH = Protocol("tenth", "a tenth are queries, the rest is database and training: for a part of the data set")


@dataclass(frozen=True)
class Benchmark:
    """The declaration of a benchmark.

    Args:
        name: its name on the command line.
        title: its full name, with the publisher.
        published: the published files, and where they are.
        licence: the terms of use.
        citation: the publication to cite.
        marker: a path that only the published layout has.
        layout: the files that are read, under their published names.
        text_width: the width of the paper's text features.
        protocols: its splits; the first is the default.
        open_points: what the paper leaves open, and what is done about it.
    """

    name: str
    title: str
    published: str
    licence: str
    citation: str
    marker: str
    layout: str
    text_width: int
    protocols: tuple[Protocol, ...]
    open_points: tuple[str, ...]

    def protocol(self, name: str) -> Protocol:
        """The protocol of that name, or a ConfigError that lists all names."""
        for protocol in self.protocols:
            if protocol.name == name:
                return protocol
        known = ", ".join(protocol.name for protocol in self.protocols)
        raise ConfigError(f"There is no split {name!r} of {self.name}; known are {known}.")

    @property
    def missing(self) -> str:
        """Where to get the files."""
        return f"{self.title} is published here: {self.published}. rmsh downloads nothing; download and unpack it."

    def missing_files(self, root: Path, names: Sequence[str]) -> DataError:
        """The error to raise if published files are missing."""
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        return DataError(f"{root} lacks {shown}. {self.missing}")


@dataclass(frozen=True, eq=False)
class Source:
    """A benchmark as published, before anything is removed.

    Args:
        pairs: every published item, in the published order; images are paths, or None.
        part: (n,) the published part of each item ("train", "val"), or None if there is only one.
        vocabulary: the words of the columns of a bag of words.
        notes: sentences about what was found.
        inputs: the files whose hashes identify the release.
        canonical_id: maps another spelling of an ID, such as a file name, to the ID.
    """

    pairs: Pairs
    part: NDArray[np.str_] | None = None
    vocabulary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()
    canonical_id: Callable[[str], str] = str

    @property
    def worded(self) -> BitArray:
        """(n,) mask of the items whose text has at least one word of the vocabulary."""
        texts: Any = self.pairs.texts
        words: BitArray = np.diff(texts.indptr) > 0 if sparse.issparse(texts) else self.pairs.has_text
        return self.pairs.has_text & words


def find(root: Path, *names: str) -> Path | None:
    """The first of some relative paths that exists under the root or up to two levels below it."""
    for depth in range(DEEPEST + 1):
        for name in names:
            for found in sorted(root.glob("*/" * depth + name)):
                return found
    return None


def text_lines(path: Path) -> list[str]:
    """The stripped lines of a text file in UTF-8, or else Latin-1."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [line.strip() for line in text.split("\n")]


def bag_of_tags(tags: Iterable[Iterable[str]], vocabulary: Sequence[str]) -> Any:
    """The words of the vocabulary that each item has, CSR float32 (n, words) of zeros and ones.

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
    """A CSR matrix (n, words) with ones at the columns ``indices[ends[i]:ends[i + 1]]`` of row i."""
    ones = np.ones(len(indices), dtype=np.float32)
    return sparse.csr_array((ones, indices, ends), shape=(len(ends) - 1, words))


def image_paths(folder: Path | None, names: Sequence[str]) -> tuple[NDArray[np.str_] | None, BitArray | None]:
    """The paths of images in a folder and a mask of those that exist; None for both if there are none."""
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
