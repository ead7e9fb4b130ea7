"""Made-up results: files of runs that never were, with numbers that a reader can check by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from lab.paper.results import Experiment, RunResult
from rmsh.compare.result import FORMAT, failure
from rmsh.compare.run import Run, class_of

MakeResult: TypeAlias = Callable[..., RunResult]
CHANCE = 0.13


def make(
    dataset: str = "coco66k",
    method: str = "rmsh",
    *,
    ndcg: float | tuple[float, float] = 0.5,
    bounds: tuple[float, int] = (8.5, 39),
    **parameters: Any,
) -> RunResult:
    """The result of a run with a given NDCG@500, of both directions or of each."""
    run = Run(dataset, method, **parameters)
    i2t, t2i = ndcg if isinstance(ndcg, tuple) else (ndcg, ndcg)
    scores = {"i2t": i2t, "t2i": t2i}
    result: dict[str, Any] = {
        "format": FORMAT,
        "status": "done",
        "run": run.to_json(),
        "method_version": class_of(run).version,
        "code_hash": "carried over",
        "config": {"lambda1": 0.3, "lambda2": 3.0, "lambda3": 0.3, "lambda4": 0.1, **run.options},
        "training_pairs": run.train or 100,
        "split": {"name": dataset, "sha256": "ab" * 32},
        "definitions": {"ndcg": "NDCG@500: made up"},
        "scores": {d: {"ndcg@500": _score(v), "map@all": _score(v + 0.1)} for d, v in scores.items()},
        "curves": {
            d: {"rank": [1, 10, 100], "recall": [0.01, 0.1, 1.0], "precision": [v, 0.4, 0.2]} for d, v in scores.items()
        },
        "distances": {d: _distances(run.bits) for d in scores},
        "audit": {"image": _audit(run.bits, distinct=90), "text": _audit(run.bits, distinct=80)},
        "facts": {"delta": _delta(run, bounds)},
        "history": [{}, {"classification": 40.0, "pseudo classification": 3.0, "quantisation": 5.0, "inter": 0.1}],
        "seconds": {"fit": 10.0, "fit_cpu": 20.0 + 100 * i2t, "encode": 1.0, "evaluate": 1.0},
        "peak_memory_mb": 900,
        "versions": {"rmsh": "0"},
    }
    return RunResult(run, result)


def _score(value: float) -> dict[str, float]:
    return {"value": value, "pessimistic": value - 0.01, "optimistic": value + 0.01, "chance": CHANCE}


def _distances(bits: int) -> dict[str, list[int]]:
    """Pairs that share more lie nearer: a hundred at each distance around a quarter, a half of the bits."""
    groups = {"0": bits // 2, "1": bits // 3, "2": bits // 4, "3+": bits // 6}
    spread = np.arange(bits + 1)
    return {
        name: np.round(1000 * np.exp(-(((spread - middle) / (1 + bits / 12)) ** 2))).astype(int).tolist()
        for name, middle in groups.items()
    }


def _audit(bits: int, *, distinct: int) -> dict[str, Any]:
    """A quarter of the items have the first bit, half of them any other; the last has one value on all."""
    ones = [0.25, *[0.5] * (bits - 2), 1.0] if bits else []
    return {"items": 100, "bits": bits, "ones": ones, "dead": [bits - 1], "nearly_constant": [], "distinct": distinct}


def _delta(run: Run, bounds: tuple[float, int]) -> dict[str, Any]:
    if "delta" in run.options:
        return {"delta": run.options["delta"], "reason": "given by the user"}
    paper = {"lower": bounds[0], "upper": bounds[1], "feasible": bounds[0] <= bounds[1]}
    return {"delta": round(sum(bounds) / 2), "feasible": True, "reason": "the middle", "used": paper, "paper": paper}


def fail(dataset: str = "coco66k", method: str = "rmsh", *, error: str = "it broke", **parameters: Any) -> RunResult:
    """The result of a run that failed."""
    run = Run(dataset, method, **parameters)
    return RunResult(run, failure(run, error, 1.0))


@pytest.fixture
def make_result() -> MakeResult:
    return make


@pytest.fixture
def fail_result() -> MakeResult:
    return fail


METHOD_SCORES = {
    "cmfh": 0.30,
    "uch": 0.31,
    "seph": 0.40,
    "dcmh": 0.42,
    "tdh": 0.44,
    "ssah": 0.46,
    "svhn": 0.50,
    "rmsh": 0.60,
}
DELTA_SCORES = {3.2: 0.50, 6.4: 0.54, 16.0: 0.60, 19.2: 0.61, 32.0: 0.59, 42.667: 0.52, 64.0: 0.45, 85.333: 0.40}


def make_all() -> Experiment:
    """Everything that the paper shows: every method, length, sweep and noise."""
    lengths = {16: -0.1, 32: -0.05, 64: 0.0, 128: 0.02}
    methods = [
        make(method=m, bits=bits, seed=seed, ndcg=(s + d + 0.001 * seed, s + d + 0.03))
        for m, s in METHOD_SCORES.items()
        for bits, d in lengths.items()
        for seed in (range(3) if bits == 64 else [0])
    ]
    parts = {"RMSH-T": ("triplet", 0.02), "RMSH-C": ("classification", 0.2), "RMSH-P": ("pseudo_codes", 0.01)}
    ablation = [
        make(seed=seed, ndcg=0.6 - loss + 0.001 * seed, options={part: False}, tag=variant)
        for variant, (part, loss) in parts.items()
        for seed in range(3)
    ]
    deltas = [
        sweep_run("delta", d, bits=128, train=20_000, seed=seed, ndcg=s + 0.001 * seed)
        for d, s in DELTA_SCORES.items()
        for seed in range(2)
    ]
    values = {0.01: 0.55, 0.1: 0.58, 1.0: 0.57, 10.0: 0.5}
    weights = [
        sweep_run(f"lambda{n}", v, train=20_000, seed=seed, ndcg=s + 0.001 * seed)
        for n in range(1, 5)
        for v, s in values.items()
        for seed in range(2)
    ]
    noise = {
        kind: [
            make(method=m, train=20_000, ndcg=METHOD_SCORES[m] * (1 - v), **{kind.replace(" ", "_"): v})
            for m in ("dcmh", "rmsh")
            for v in (0.0, 0.2, 0.4)
        ]
        for kind in ("label noise", "image noise", "text noise")
    }
    return Experiment(
        "coco66k",
        {
            "table 1": methods,
            "ablation": ablation,
            "delta": [*deltas, make(bits=128, train=20_000, ndcg=0.6)],
            "weights": [*weights, make(train=20_000, ndcg=0.6)],
            **noise,
        },
    )


def sweep_run(option: str, value: float, **parameters: Any) -> RunResult:
    """A run of a sweep, with the tag that a grid gives it."""
    return make(options={option: value}, tag=f"{option}={value:g}", **parameters)


@pytest.fixture
def make_sweep_run() -> MakeResult:
    return sweep_run


@pytest.fixture(scope="session")
def everything() -> Experiment:
    return make_all()
