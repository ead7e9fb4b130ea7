"""Grids: a YAML file of blocks becomes a list of runs, the most important first.

    datasets: [coco66k]          # the command line says where each one is
    chosen: chosen.yaml          # optional: options by method, selected on validation
    blocks:
      - name: table 1
        methods: [rmsh, dcmh]
        bits: {64: [0, 1, 2], 16: [0]}   # seeds by length; or a list of lengths, with `seeds` beside it
      - name: ablation
        methods: [rmsh]
        variants:
          RMSH-T: {triplet: false}

A block is the product of its protocols, methods, lengths, seeds, variants, sweeps and noise levels. Options of a
variant override those of a sweep, which override the block's, which override the chosen ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import yaml
from pydantic import Field

from rmsh.compare.run import Run
from rmsh.core.config import Config
from rmsh.core.errors import ConfigError


class Block(Config):
    """Runs that belong together, such as those of a table."""

    name: str = Field(description="name of the block, by which a report finds it")
    methods: list[str] = Field([], description="registered methods")
    references: list[str] = Field([], description="reference lines, see references.py; one run each")
    bits: list[int] | dict[int, list[int]] = Field([64], description="code lengths, or the seeds of each length")
    seeds: list[int] = Field([0], description="seeds if bits is a list")
    protocols: list[str] = Field(["paper"], description="paper, unseen or both")
    prefixes: list[int] = Field([], description="lengths of code prefixes to score too; those below bits count")
    presets: list[str | None] = Field([None], description="named sets of the methods' options")
    options: dict[str, Any] = Field({}, description="options of all methods of the block")
    variants: dict[str, dict[str, Any]] = Field({}, description="options by the name that a table shows")
    sweeps: dict[str, list[Any]] = Field({}, description="values of single options, varied one at a time")
    text: str = Field("minilm", description="encoder of raw texts")
    train: int | None = Field(None, description="number of training pairs; None for all")
    validation: bool = Field(False, description="held-out training pairs are the queries")
    label_noise: list[float] = Field([0.0], description="shares of the training pairs with the labels of another")
    image_noise: list[float] = Field([0.0], description="noise in the images of the queries")
    text_noise: list[float] = Field([0.0], description="noise in the texts of the queries")
    chosen: bool = Field(True, description="use the options selected on validation")
    datasets: list[str] | None = Field(None, description="some of the grid's datasets; None for all")

    def lengths(self) -> Iterator[tuple[int, int]]:
        """Bits and seed of each run; the first seeds of all lengths come first."""
        by_bits = self.bits if isinstance(self.bits, dict) else dict.fromkeys(self.bits, self.seeds)
        for turn in range(max(map(len, by_bits.values()), default=0)):
            yield from ((bits, seeds[turn]) for bits, seeds in by_bits.items() if turn < len(seeds))

    def cases(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Variants and values of sweeps by their name in a table; a single unnamed case if there are none."""
        yield from self.variants.items()
        for option, values in self.sweeps.items():
            for value in values:
                yield f"{option}={value:g}" if isinstance(value, float) else f"{option}={value}", {option: value}
        if not self.variants and not self.sweeps:
            yield "", {}


class _File(Config):
    """The top level of a grid file."""

    datasets: list[str]
    blocks: list[dict[str, Any]]
    chosen: str | None = None


@dataclass(frozen=True)
class Grid:
    """The content of a grid file."""

    datasets: tuple[str, ...]
    blocks: tuple[Block, ...]
    chosen: Mapping[str, Mapping[str, Any]]  # options by method, selected on validation

    def runs(self) -> list[Run]:
        """All runs without repetitions, in the order of the blocks."""
        return _distinct(run for block in self.blocks for run in self._runs_of(block))

    def block(self, name: str) -> list[Run]:
        """The runs of one block; a ConfigError if there is none of that name."""
        for block in self.blocks:
            if block.name == name:
                return _distinct(self._runs_of(block))
        known = ", ".join(repr(block.name) for block in self.blocks)
        raise ConfigError(f"The grid has no block {name!r}; it has {known}.")

    def _runs_of(self, block: Block) -> Iterator[Run]:
        """The runs of a block; reference lines and first seeds come first."""
        datasets = self.datasets if block.datasets is None else block.datasets
        shared: dict[str, Any] = {"text": block.text, "train": block.train, "validation": block.validation}
        for dataset, protocol, name in product(datasets, block.protocols, block.references):
            yield Run(dataset, name, 0, protocol=protocol, **shared)
        cases, noise = list(block.cases()), product(block.label_noise, block.image_noise, block.text_noise)
        variations = list(product(block.methods, block.presets, cases, noise))
        for dataset, (bits, seed), protocol in product(datasets, block.lengths(), block.protocols):
            for method, preset, (tag, options), (labels, images, texts) in variations:
                # A preset stands for somebody else's options; ours would change it.
                chosen = self.chosen.get(method, {}) if block.chosen and preset is None else {}
                yield Run(
                    dataset,
                    method,
                    bits,
                    seed,
                    preset=preset,
                    options={**chosen, **block.options, **options},
                    label_noise=labels,
                    image_noise=images,
                    text_noise=texts,
                    protocol=protocol,
                    prefixes=tuple(length for length in block.prefixes if length < bits),
                    tag=tag or preset or "",
                    **shared,
                )


def _distinct(runs: Iterator[Run]) -> list[Run]:
    first: dict[PurePosixPath, Run] = {}
    for run in runs:
        first.setdefault(run.path, run)
    return list(first.values())


def read_grid(path: Path) -> Grid:
    """Read a grid file; a ConfigError names the block with a wrong key or value."""
    content = parse_at(_File, read_mapping(path), str(path))
    blocks: dict[str, Block] = {}
    for number, values in enumerate(content.blocks, start=1):
        location = f"{path}, block {number}"
        block = parse_at(Block, values, location)
        if not block.methods and not block.references:
            raise ConfigError(f"{location} ({block.name!r}) names neither methods nor references; name at least one.")
        if block.name in blocks:
            raise ConfigError(f"{location} is called {block.name!r} like an earlier block; give each its own name.")
        blocks[block.name] = block
    chosen = {} if content.chosen is None else read_mapping(path.parent / content.chosen)
    return Grid(tuple(content.datasets), tuple(blocks.values()), chosen)


_Parsed = TypeVar("_Parsed", bound=Config)


def parse_at(cls: type[_Parsed], values: Mapping[str, Any], location: str) -> _Parsed:
    """Parse a configuration; an error names its location in a file."""
    try:
        return cls.parse(values)
    except ConfigError as error:
        raise ConfigError(f"{location}: {error}") from error


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file that contains a mapping; anything else is a ConfigError."""
    if not path.is_file():
        raise ConfigError(f"{path} does not exist; give a YAML file, such as lab/grids/smoke.yaml.")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not readable as YAML ({error}); correct the file.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} contains a {type(content).__name__}; a mapping with keys is expected.")
    return content
