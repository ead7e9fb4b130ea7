"""What made a result: the commit and the code of the method, package versions, the machine and its memory."""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rmsh import __version__

_PACKAGE = Path(__file__).resolve().parent.parent
_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


@cache
def commit() -> str | None:
    """The commit of the checkout that rmsh runs from, ending in "-dirty" if its code was changed; None if installed.

    Results do not count as changes: a run that adds to a recorded result would call itself dirty.
    """
    checkout, git = _PACKAGE.parent.parent, shutil.which("git")
    # A package installed below somebody else's repository must not record that repository's commit.
    if git is None or _PACKAGE.parent.name != "src" or not (checkout / ".git").exists():
        return None
    run = partial(subprocess.run, cwd=checkout, capture_output=True, text=True, check=False)
    head = run([git, "rev-parse", "HEAD"]).stdout.strip()
    changed = run([git, "diff", "--quiet", "HEAD", "--", ".", ":(exclude)lab/results"]).returncode != 0
    return (head + "-dirty" * changed) or None


def versions() -> dict[str, str]:
    """The versions a result depends on; packages that are not installed are left out."""
    found = {"rmsh": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "torch"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def machine() -> dict[str, Any]:
    """The machine that times were measured on."""
    threads = os.environ.get("OMP_NUM_THREADS")
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": int(threads) if threads and threads.isdecimal() else None,
    }


def peak_memory_mb() -> int | None:
    """Peak memory of this process in megabytes; None if the system does not report it.

    On Linux it is read from /proc: in ``getrusage`` a child process starts with the peak of its parent.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def forget_peak_memory() -> None:
    """Reset the peak to the memory in use now; only Linux allows this."""
    with suppress(OSError):
        _CLEAR_REFS.write_text("5")  # the kernel's number for the peak


# Definitions in these packages, and in that of the method, are part of it; other imports are not followed.
_FOLLOWED = ("rmsh.methods", "rmsh.training", "rmsh.coding")
_DESCRIPTIVE = {"name", "summary", "reference", "version"}  # class attributes that change nothing that is learned


@cache
def code_hash(cls: type) -> str | None:
    """SHA-256 of the functions, classes and constants that a method uses; None if its source is not available.

    Docstrings, comments, annotations of functions, error messages and the modules that definitions are in do not count.
    """
    start = (cls.__module__, cls.__name__)
    if _source(cls.__module__) is None:
        return None
    pending, seen, trees = [start], {start}, set()
    while pending:
        module, name = pending.pop()
        source = _source(module)
        if source is None or name not in source.definitions:
            found = [source.imports[name]] if source and name in source.imports else []
        else:
            node = source.definitions[name]
            trees.add(json.dumps(_plain_tree(node)))
            found = list(source.uses(node, module))
        new = {*found} - seen
        seen |= new
        pending += new
    return sha256("\n".join(sorted(trees)).encode()).hexdigest()


_Name = tuple[str, str]  # a module, and a name in it


@dataclass(frozen=True)
class _Source:
    """The top-level definitions of a module, and the names that it imports from followed packages."""

    definitions: dict[str, ast.stmt]
    imports: dict[str, _Name]

    def uses(self, node: ast.stmt, module: str) -> Iterator[_Name]:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in self.imports:
                yield ".".join(self.imports[part.value.id]), part.attr  # a name of an imported module
            if isinstance(part, ast.Name) and part.id in self.definitions:
                yield module, part.id
            elif isinstance(part, ast.Name) and part.id in self.imports:
                yield self.imports[part.id]


@cache
def _source(module: str) -> _Source | None:
    try:
        spec = find_spec(module)
        text = spec.loader.get_source(module) if spec and spec.loader else None  # type: ignore[attr-defined]
    except (ImportError, ValueError, AttributeError):  # not a module, __main__, or no Python source
        return None
    if text is None:
        return None
    tree, followed = ast.parse(text), (*_FOLLOWED, module.rpartition(".")[0] or module)
    definitions: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            definitions |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    imports = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(followed)
        for alias in node.names
    }
    return _Source(definitions, imports)


def _plain_tree(node: Any) -> Any:
    """A syntax tree as nested lists, without what cannot change a result."""
    if isinstance(node, list):
        return [_plain_tree(part) for part in node if not _is_text(part)]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Raise):
        return ["Raise"]
    without = {"ctx", "returns"} | ({"annotation"} if isinstance(node, ast.arg) else set())
    fields = [(name, value) for name, value in ast.iter_fields(node) if name not in without and value not in (None, [])]
    return [type(node).__name__, *([name, _plain_tree(value)] for name, value in fields)]


def _is_text(node: Any) -> bool:
    """Whether a node is there for people: a docstring, a description, an attribute that names or describes a class."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.keyword):
        return node.arg == "description"
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id in _DESCRIPTIVE for target in targets)
