"""Stages of long work: each leaves a small file that names its inputs, so that a second run skips it.

The file is written last and atomically. A stage that was killed has none and is repeated; so is one whose inputs
changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from rmsh.core.errors import FormatError
from rmsh.core.files import read_json, write_json


def digest(*values: Any) -> str:
    """Hash of plain values.

    Example:
        >>> digest({"bits": 64}, "abc") == digest({"bits": 64}, "abc"), digest(1) == digest(2)
        (True, False)
    """
    return sha256(json.dumps(values, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:16]


class Stages:
    """The stages of one piece of work, whose files are in a folder; ``on_skip`` is called with the name of a stage."""

    def __init__(self, folder: Path, *, on_skip: Callable[[str], None]) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}  # how long each stage took when it was last run
        self._on_skip = on_skip

    def run(self, name: str, key: str, work: Callable[[], dict[str, Any]], *, exists: bool = True) -> dict[str, Any]:
        """Run a stage and store its result, plain values, or return the one stored for the same key.

        The key identifies the inputs, see :func:`digest`; ``exists`` tells whether other files of the stage still do.
        """
        path = self.folder / f"{name}.json"
        stored = _read(path)
        if exists and stored is not None and stored["key"] == key:
            self.seconds[name] = stored["seconds"]
            self._on_skip(name)
            return dict(stored["result"])
        path.unlink(missing_ok=True)
        start = time.perf_counter()
        result = work()
        self.seconds[name] = round(time.perf_counter() - start, 3)
        write_json(path, {"key": key, "seconds": self.seconds[name], "result": result})
        return result


def _read(path: Path) -> dict[str, Any] | None:
    """The content of a stage's file; None if it is missing or damaged."""
    try:
        stored = read_json(path)
    except (OSError, FormatError):
        return None
    return stored if isinstance(stored, dict) and {"key", "seconds", "result"} <= stored.keys() else None
