"""Grids: a YAML file of blocks becomes a list of runs, the important first.

    datasets: [coco66k]          # where each lies is said on the command line
    chosen: chosen.yaml          # optional: options by method, chosen on validation
    blocks:
      - name: table 1
        methods: [rmsh, dcmh]
        bits: {64: [0, 1, 2], 16: [0]}   # seeds by length; or a list of lengths, with `seeds` beside it
      - name: ablation
        methods: [rmsh]
        variants:
          RMSH-T: {triplet: false}

A block is the product of its methods, lengths, seeds, variants, sweeps and noise levels. Options of a variant win over
those of a sweep, these over the block's, these over the chosen ones.

A run: one method, learned once and scored; everything its result depends on, and the file its result is in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import yaml
from pydantic import Field

from rmsh.codes import MAX_BITS
from rmsh.core.config import Config
from rmsh.core.errors import ConfigError

# What a file's name shows; the rest is in its hash.
_SHOWN = ("dataset", "method", "bits", "seed")
_USUAL: dict[str, Any] = {
    "preset": None,
    "options": {},
    "text": "minilm",
    "train": None,
    "validation": False,
    "label_noise": 0.0,
    "image_noise": 0.0,
    "text_noise": 0.0,
    "k": 500,
}


@dataclass(frozen=True)
class Run:
    """One training and its scores.

    Args:
        dataset: the short name of the data, such as "coco66k".
        method: a registered method, or a reference line without codes, see references.py.
        bits: the length of a code; 0 for a reference line.
        seed: everything random follows from it.
        preset: a named set of the method's options.
        options: of the method; they win over the preset.
        text: the encoder of raw texts.
        train: learn from so many of the training pairs only; None is all. On validation they are also what is searched,
            where the database is what is learned from.
        validation: held-out training pairs ask in the place of the queries.
        label_noise: share of the training pairs whose labels are those of another pair.
        image_noise: noise in the pictures that ask, see noise.py.
        text_noise: noise in the texts that ask.
        k: where NDCG and precision cut the ranking.
        tag: what a table calls this run; its result does not depend on it, nor does its path.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> Run("coco66k", "rmsh").path
        PurePosixPath('coco66k/rmsh-64-s0.json')
        >>> Run("coco66k", "rmsh", bits=16, options={"delta": 2.0}).path
        PurePosixPath('coco66k/rmsh-16-s0-7bc53310.json')
    """

    dataset: str
    method: str
    bits: int = 64
    seed: int = 0
    preset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str = "minilm"
    train: int | None = None
    validation: bool = False
    label_noise: float = 0.0
    image_noise: float = 0.0
    text_noise: float = 0.0
    k: int = 500
    tag: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= MAX_BITS:
            raise ConfigError(f"A run of {self.bits} bits was asked for; give 1 to {MAX_BITS}.")
        if self.train is not None and self.train < 3:
            raise ConfigError(f"{self.train} training pairs were asked for; give at least 3, or leave it out.")
        if self.k < 1:
            raise ConfigError(f"A ranking was to be cut at k = {self.k}; give a whole number from 1.")
        if not 0 <= self.label_noise <= 1:
            raise ConfigError(f"label_noise is {self.label_noise}; it is a share of the training pairs, 0 to 1.")
        if self.image_noise < 0 or self.text_noise < 0:
            raise ConfigError(f"image_noise is {self.image_noise} and text_noise {self.text_noise}; give 0 or more.")

    @property
    def path(self) -> PurePosixPath:
        """Where the result is, relative to the folder of all results: readable, and another for other parameters."""
        unusual = {name: getattr(self, name) for name, usual in _USUAL.items() if getattr(self, name) != usual}
        length = f"-{self.bits}" if self.bits else ""
        name = f"{self.method}{length}-s{self.seed}" + (f"-{_digest(unusual)}" if unusual else "")
        return PurePosixPath(self.dataset) / f"{name}.json"

    def to_json(self) -> dict[str, Any]:
        """All parameters as plain values."""
        return {name: getattr(self, name) for name in (*_SHOWN, *_USUAL)} | {"options": dict(self.options)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Run:
        """The run of a result file's "run".

        Example:
            >>> run = Run("coco66k", "scm", options={"ridge": 0.1})
            >>> Run.from_json(run.to_json()) == run
            True
        """
        return cls(**values)


def _digest(value: Any) -> str:
    return sha256(json.dumps(_plain(value), sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:8]


def _plain(value: Any) -> Any:
    """The same value however it was written: 2.0 is 2.

    Example:
        >>> _plain({"delta": 2.0, "masks": [True, 0.5]})
        {'delta': 2, 'masks': [True, 0.5]}
    """
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Parsed = TypeVar("_Parsed", bound=Config)


class Block(Config):
    """Runs that belong together, such as those of a table."""

    name: str = Field(description="what a report finds the block by")
    methods: list[str] = Field([], description="registered methods")
    references: list[str] = Field([], description="lines without codes, see references.py; once a seed")
    bits: list[int] | dict[int, list[int]] = Field([64], description="lengths; or the seeds of each")
    seeds: list[int] = Field([0], description="where bits are a list")
    presets: list[str | None] = Field([None], description="named sets of the methods' options")
    options: dict[str, Any] = Field({}, description="of all methods of the block")
    variants: dict[str, dict[str, Any]] = Field({}, description="options by the name a table shows")
    sweeps: dict[str, list[Any]] = Field({}, description="options that take each of these values, one at a time")
    text: str = Field("minilm", description="the encoder of raw texts")
    train: int | None = Field(None, description="so many training pairs only")
    validation: bool = Field(False, description="held-out training pairs ask in the place of the queries")
    label_noise: list[float] = Field([0.0], description="shares of the training pairs with another's labels")
    image_noise: list[float] = Field([0.0], description="in the pictures that ask")
    text_noise: list[float] = Field([0.0], description="in the texts that ask")
    chosen: bool = Field(True, description="whether the options chosen on validation are used")
    datasets: list[str] | None = Field(None, description="some of the grid's; None is all")

    def lengths(self) -> Iterator[tuple[int, int]]:
        """Bits and seed of each run, the first seeds of all lengths first."""
        by_bits = self.bits if isinstance(self.bits, dict) else dict.fromkeys(self.bits, self.seeds)
        for turn in range(max(map(len, by_bits.values()), default=0)):
            yield from ((bits, seeds[turn]) for bits, seeds in by_bits.items() if turn < len(seeds))

    def cases(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Variants and values of sweeps, by the name a table shows; one without a name where there are none."""
        yield from self.variants.items()
        for option, values in self.sweeps.items():
            yield from (
                (f"{option}={value:g}" if isinstance(value, float) else f"{option}={value}", {option: value})
                for value in values
            )
        if not self.variants and not self.sweeps:
            yield "", {}


class _File(Config):
    """The top of a grid file."""

    datasets: list[str]
    blocks: list[dict[str, Any]]
    chosen: str | None = None


@dataclass(frozen=True)
class Grid:
    """What a grid file says.

    Args:
        datasets: the names of the data.
        blocks: in the order of the file.
        chosen: options by method, chosen on validation.
    """

    datasets: tuple[str, ...]
    blocks: tuple[Block, ...]
    chosen: Mapping[str, Mapping[str, Any]]

    def runs(self) -> list[Run]:
        """All runs, each once, in the order of the blocks."""
        return distinct(run for block in self.blocks for run in self.runs_of(block))

    def block(self, name: str) -> list[Run]:
        """The runs of one block.

        Raises:
            ConfigError: there is none of that name.
        """
        for block in self.blocks:
            if block.name == name:
                return distinct(self.runs_of(block))
        known = ", ".join(repr(block.name) for block in self.blocks)
        raise ConfigError(f"The grid has no block {name!r}; it has {known}.")

    def runs_of(self, block: Block) -> Iterator[Run]:
        """The runs of a block, reference lines and first seeds first."""
        datasets = self.datasets if block.datasets is None else block.datasets
        levels = list(product(block.label_noise, block.image_noise, block.text_noise))
        shared = {"text": block.text, "train": block.train, "validation": block.validation}
        for dataset, name in product(datasets, block.references):
            yield Run(dataset, name, 0, **shared)  # type: ignore[arg-type]
        for dataset, (bits, seed) in product(datasets, block.lengths()):
            for method, preset, (tag, options), noise in product(
                block.methods, block.presets, list(block.cases()), levels
            ):
                yield Run(
                    dataset,
                    method,
                    bits,
                    seed,
                    preset=preset,
                    options=self._options(block, method, preset, options),
                    **dict(zip(("label_noise", "image_noise", "text_noise"), noise, strict=True)),
                    **shared,  # type: ignore[arg-type]
                    tag=tag or preset or "",
                )

    def _options(self, block: Block, method: str, preset: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
        # A preset is somebody else's choice: ours would not leave it what it is.
        chosen = self.chosen.get(method, {}) if block.chosen and preset is None else {}
        return {**chosen, **block.options, **options}


def distinct(runs: Iterator[Run]) -> list[Run]:
    """Each run once, where it comes first.

    Example:
        >>> len(distinct(iter([Run("a", "scm"), Run("a", "scm", tag="again"), Run("b", "scm")])))
        2
    """
    first: dict[PurePosixPath, Run] = {}
    for run in runs:
        first.setdefault(run.path, run)
    return list(first.values())


def read_grid(path: Path) -> Grid:
    """Read a grid file.

    Raises:
        ConfigError: the file is missing or no YAML, or a key or a value is wrong; the message names the block.
    """
    content = parse_at(_File, read_mapping(path), str(path))
    blocks = tuple(_block(values, f"{path}, block {number}") for number, values in enumerate(content.blocks, start=1))
    names = [block.name for block in blocks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{path} has {names.count(name)} blocks called {name!r}; give each a name of its own.")
    return Grid(
        tuple(content.datasets), blocks, {} if content.chosen is None else read_mapping(path.parent / content.chosen)
    )


def parse_at(cls: type[_Parsed], values: Mapping[str, Any], place: str) -> _Parsed:
    """A configuration from a place in a file, which an error names."""
    try:
        return cls.parse(values)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error


def _block(values: dict[str, Any], place: str) -> Block:
    block = parse_at(Block, values, place)
    if not block.methods and not block.references:
        raise ConfigError(f"{place} ({block.name!r}) names neither methods nor references; name at least one.")
    return block


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        ConfigError: the file is missing, no YAML, or holds something else.
    """
    if not path.is_file():
        raise ConfigError(f"{path} does not exist; give a YAML file, such as lab/grids/smoke.yaml.")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not readable as YAML ({error}); mend it.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds {type(content).__name__}; a mapping with keys is expected.")
    return content
