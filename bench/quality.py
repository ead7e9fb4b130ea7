"""Quality on coco66k: RMSH, its presets, its ablations and its options; one JSON file a run, tables from the files.

A run's file name follows from its parameters; a run whose file exists is not made again.
"""

from __future__ import annotations

import argparse
import platform
import re
import resource
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bench import tables
from bench.data import RESULTS, coco66k
from rmsh import __version__
from rmsh.files import write_json
from rmsh.methods import create
from rmsh.metrics.audit import audit_bits
from rmsh.metrics.report import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rmsh.data.open import Opened

FOLDER = RESULTS / "quality"


@dataclass(frozen=True)
class Run:
    """One training and its scores."""

    name: str
    bits: int = 64
    seed: int = 0
    text: str = "minilm"
    preset: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    train: int | None = None  # so many training pairs only
    validation: bool = False

    @property
    def path(self) -> Path:
        """Where its result is, or will be."""
        return FOLDER / f"{self.name}.{self.text}.{self.bits}.s{self.seed}.json"


ABLATIONS: dict[str, dict[str, Any]] = {
    "rmsh-t": {"triplet": False},
    "rmsh-c": {"classification": False},
    "rmsh-p": {"pseudo_codes": False},
}

# Every point where the paper is silent: another choice than the default, see DISCREPANCIES.md.
CHOICES: dict[str, dict[str, Any]] = {
    "default": {},
    "distance raw": {"distance": "raw"},
    "confidence 0.75": {"confidence": 0.75},
    "delta 16, K over 4": {"delta": 16},
    "hidden tanh": {"activation": "tanh"},
    "no batch norm": {"batch_norm": False},
    "no dropout": {"dropout": 0.0},
    "standardised features": {"scaling": "standardise"},
    "a head each": {"heads": "each"},
    "pseudo networks each": {"pseudo_networks": "each"},
    "cross-entropy mean": {"class_reduction": "mean"},
    "1 triplet an item": {"triplets_per_item": 1},
    "most tags as anchor": {"inter_anchor": "max_tags"},
    "rank equal partners": {"mask_equal": False},
    "keep empty intersections": {"mask_empty": False},
    "w_p 30": {"positive_weight": 30.0},
    "w_p 5": {"positive_weight": 5.0},
    "lambdas of the paper": {"lambda1": 0.01, "lambda2": 0.1, "lambda3": 0.1},
    "rate of the paper": {"learning_rate": 1e-3},
    "constant rate": {"schedule": "constant"},
    "b by epoch": {"code_update": "epoch"},
    "batch 128": {"batch": 128},
}


def grid() -> Iterator[Run]:
    """All runs, the most important first."""
    for seed in range(3):
        yield Run("default", seed=seed)
    for preset in ("paper", "paper-literal"):
        yield Run(preset, preset=preset)
    for bits in (16, 32, 128):
        yield Run("default", bits=bits)
    for seed in range(5):
        yield Run("default", seed=seed)
        for name, options in ABLATIONS.items():
            yield Run(name, seed=seed, options=options)
    for seed in range(3):
        yield Run("default", seed=seed, text="bag-of-words")
    for bits in (16, 32, 128):
        for preset in ("paper", "paper-literal"):
            yield Run(preset, bits=bits, preset=preset)
    for name, options in CHOICES.items():
        yield Run(f"choice {name}", options={**options, "epochs": 8}, train=20_000, validation=True)


def main(arguments: argparse.Namespace) -> None:
    """Make the missing runs of this worker's part, then build the tables."""
    part, parts = (int(number) for number in arguments.part.split("/"))
    wanted = [run for run in _distinct(grid()) if re.search(arguments.only, run.path.name)]
    if not arguments.tables:
        for run in wanted[part - 1 :: parts]:
            if not run.path.exists():
                print(f"{run.path.name} ...", flush=True)
                write_json(run.path, measure(run))
    tables.write_quality(FOLDER)


def _distinct(runs: Iterator[Run]) -> list[Run]:
    return list({run.path: run for run in runs}.values())


_opened: dict[tuple[str, bool], Opened] = {}


def _data(run: Run) -> Opened:
    key = (run.text, run.validation)
    if key not in _opened:
        _opened.clear()  # one set of features in memory at a time
        _opened[key] = coco66k(run.text, validation=run.validation)
    return _opened[key]


def measure(run: Run) -> dict[str, Any]:
    """Train, code, score."""
    opened = _data(run)
    split, pairs = opened.split, opened.pairs
    assert split is not None  # noqa: S101  # coco66k has one
    rows = split.train if run.train is None else np.random.default_rng(0).permutation(split.train)[: run.train]
    method = create("rmsh", preset=run.preset, bits=run.bits, seed=run.seed, **run.options)
    start = time.process_time()  # of the processor: other work on the machine does not count
    method.fit(pairs.take(np.sort(rows)))
    seconds = time.process_time() - start
    codes = {m: method.encode(pairs.features(m), m, ids=pairs.ids) for m in ("image", "text")}
    labels = np.asarray(pairs.labels)
    scores = {}
    for direction, asking, asked in (("i2t", "image", "text"), ("t2i", "text", "image")):
        score = evaluate(
            codes[asking].take(split.query),
            codes[asked].take(split.database),
            labels[split.query],
            labels[split.database],
        )
        scores[direction] = {"ndcg@500": asdict(score.ndcg), "map@all": asdict(score.map)}
    return {
        "run": run.name,
        "bits": run.bits,
        "seed": run.seed,
        "text": run.text,
        "preset": run.preset,
        "options": method.config.model_dump(),
        "training_pairs": len(rows),
        "split": {"name": split.name, "sha256": split.sha256},
        "scores": scores,
        "audit": {m: audit_bits(codes[m].take(split.database)).to_json() for m in codes},
        "facts": dict(method.model.facts),
        "cpu_seconds": round(seconds, 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "versions": {"rmsh": __version__, "python": platform.python_version(), "numpy": np.__version__},
    }
