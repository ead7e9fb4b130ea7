"""The parts of every benchmark: its declaration, its split protocols, the data as published, and reading helpers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from scipy import sparse

from rmsh.core.config import Config
from rmsh.core.errors import ConfigError, DataError
from rmsh.core.files import open_regular
from rmsh.data.pairs import Pairs, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray

DEEPEST = 2  # levels below the root at which a published folder is found
IMAGE_WIDTH = 2048  # of the paper's image features (ResNet-152)


class Protocol(Config):
    """How a benchmark is split."""

    name: str
    about: str  # whose protocol it is, in a sentence
    queries: int = 0  # 0 means a tenth of all pairs
    database: int | None = None  # number of other pairs in the database; None means all
    train: int | None = None  # number of database pairs to train on; None means all
    classes: int | None = None  # number of most frequent classes to use; None means all
    labelled: bool = True  # remove pairs without a label; queries always have one
    worded: bool = True  # remove pairs without a word
    parts: tuple[str, str] | None = None  # the published part (such as "train") of the database, and of the queries
    in_order: bool = False  # take the first rows instead of random ones


class Benchmark(Config):
    """The declaration of a benchmark."""

    name: str  # on the command line
    title: str  # full name, with the publisher
    published: str  # the published files, and where they are
    licence: str  # terms of use
    citation: str  # publication to cite
    marker: str  # a path that only the published layout has
    layout: str  # the files that are read, under their published names
    text_width: int  # of the paper's text features
    protocols: tuple[Protocol, ...]  # the first is the default
    open_points: tuple[str, ...]  # what the paper leaves open, and what is done about it

    def protocol(self, name: str) -> Protocol:
        """The protocol of that name, or a ConfigError that lists all names."""
        protocols = {protocol.name: protocol for protocol in self.protocols}
        if name not in protocols:
            raise ConfigError(f"There is no split {name!r} of {self.name}; known are {', '.join(protocols)}.")
        return protocols[name]

    @property
    def missing(self) -> str:
        """Where to get the files."""
        return f"{self.title} is published here: {self.published}. rmsh downloads nothing; download and unpack it."

    def find_files(self, root: Path, files: Mapping[str, Sequence[str]]) -> dict[str, Path]:
        """The path of each published file (shown name -> possible names), or a DataError that lists missing ones."""
        found = {name: find(root, *names) for name, names in files.items()}
        missing = [name for name, path in found.items() if path is None]
        if missing:
            raise DataError(f"{root} lacks {listed(missing)}. {self.missing}")
        return {name: path for name, path in found.items() if path is not None}


@dataclass(frozen=True, eq=False)
class Source:
    """A benchmark as published, before anything is removed."""

    pairs: Pairs  # every published item, in the published order; images are paths, or None
    part: NDArray[np.str_] | None = None  # (n,) published part of each item ("train", "val"), if there are several
    vocabulary: tuple[str, ...] = ()  # words of the columns of a bag of words
    notes: tuple[str, ...] = ()  # sentences about what was found
    inputs: tuple[Path, ...] = ()  # files whose hashes identify the release
    canonical_id: Callable[[str], str] = str  # maps another spelling of an ID, such as a file name, to the ID

    @property
    def worded(self) -> BitArray:
        """(n,) mask of the items whose text has at least one word of the vocabulary."""
        texts: Any = self.pairs.texts
        words: BitArray = np.diff(texts.indptr) > 0 if sparse.issparse(texts) else self.pairs.has_text
        return self.pairs.has_text & words


_FILE = Path(__file__).with_name("benchmarks.yaml")
BENCHMARKS = {name: Benchmark(name=name, **content) for name, content in yaml.safe_load(_FILE.read_bytes()).items()}


def find(root: Path, *names: str) -> Path | None:
    """The first of some relative paths that exists under the root or up to two levels below it."""
    patterns = ("*/" * depth + name for depth in range(DEEPEST + 1) for name in names)
    return next((found for pattern in patterns for found in sorted(root.glob(pattern))), None)


def text_lines(path: Path) -> list[str]:
    """The stripped lines of a text file in UTF-8, or else Latin-1, without empty ones."""
    with open_regular(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [stripped for line in text.split("\n") if (stripped := line.strip())]


def bag_of_words(rows: Sequence[IntArray], words: int) -> Any:
    """CSR float32 (n, words) with ones at the columns that each row lists."""
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *rows])
    return sparse.csr_array((np.ones(len(columns), dtype=np.float32), columns, ends), shape=(len(rows), words))


def image_number(name: str) -> str:
    """The number at the end of a name, such as "9" of "COCO_train2014_000000000009.jpg"; else the name itself."""
    digits = re.search(r"(\d+)(\.\w+)?$", name)
    return str(int(digits[1])) if digits else name


def image_columns(folders: Sequence[Path], names: Sequence[str]) -> dict[str, Any]:
    """Columns of Pairs: the path of each image in its folder, and a mask of those that exist; empty if none does."""
    paths = [os.path.join(folder, name) for folder, name in zip(folders, names, strict=True)]
    present = np.array([os.path.isfile(path) for path in paths])
    return {"images": np.array(paths), "has_image": present} if present.any() else {}
