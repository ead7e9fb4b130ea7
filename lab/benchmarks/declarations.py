"""The declarations of the benchmarks, and how their published files are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from rmsh.core.config import Config
from rmsh.core.errors import ConfigError, DataError
from rmsh.data.pairs import listed

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

    @property
    def sentences(self) -> list[str]:
        """The declaration for people, including what the paper leaves open."""
        return [
            f"{self.name}: {self.title}",
            f"  published: {self.published}",
            f"  licence: {self.licence}",
            f"  cite: {self.citation}",
            f"  files: {self.layout}",
            *(f"  split {protocol.name}: {protocol.about}" for protocol in self.protocols),
            *(f"  open: {point}" for point in self.open_points),
        ]

    def find_files(self, root: Path, files: Mapping[str, Sequence[str]]) -> dict[str, Path]:
        """The path of each published file (shown name -> possible names), or a DataError that lists missing ones."""
        found = {name: find(root, *names) for name, names in files.items()}
        missing = [name for name, path in found.items() if path is None]
        if missing:
            raise DataError(f"{root} lacks {listed(missing)}. {self.missing}")
        return {name: path for name, path in found.items() if path is not None}


_FILE = Path(__file__).with_name("benchmarks.yaml")
BENCHMARKS = {name: Benchmark(name=name, **content) for name, content in yaml.safe_load(_FILE.read_bytes()).items()}


def find(root: Path, *names: str) -> Path | None:
    """The first of some relative paths that exists under the root or up to two levels below it."""
    patterns = ("*/" * depth + name for depth in range(DEEPEST + 1) for name in names)
    return next((found for pattern in patterns for found in sorted(root.glob(pattern))), None)
