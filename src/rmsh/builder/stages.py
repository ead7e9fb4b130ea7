"""Stages of long work: each leaves a small file that says what it was done for, so that a second run skips it.

The file is written last and atomically. A stage that was killed has none, and is done again; one whose inputs are
others is done again too.
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


def digest(*parts: Any) -> str:
    """Names plain values by their content.

    Example:
        >>> digest({"bits": 64}, "abc") == digest({"bits": 64}, "abc"), digest(1) == digest(2)
        (True, False)
    """
    return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:16]


class Stages:
    """The stages of one piece of work.

    Args:
        folder: where their files go.
        on_skip: is told the name of a stage that was done before.
    """

    def __init__(self, folder: Path, *, on_skip: Callable[[str], None]) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}  # how long each stage took when it was done
        self._on_skip = on_skip

    def run(self, name: str, key: str, work: Callable[[], dict[str, Any]], *, there: bool = True) -> dict[str, Any]:
        """The plain values a stage gives, from its file where it was done for the same key.

        Args:
            name: of the stage, and of its file.
            key: names the inputs, see :func:`digest`.
            work: does it.
            there: whether what it left beside its file is still in its place.
        """
        path = self.folder / f"{name}.json"
        found = _finished(path)
        if there and found is not None and found["key"] == key:
            self.seconds[name] = found["seconds"]
            self._on_skip(name)
            return dict(found["result"])
        path.unlink(missing_ok=True)
        start = time.perf_counter()
        result = work()
        self.seconds[name] = round(time.perf_counter() - start, 3)
        write_json(path, {"key": key, "seconds": self.seconds[name], "result": result})
        return result


def _finished(path: Path) -> dict[str, Any] | None:
    """What the file of a stage says; one that cannot be read says nothing."""
    try:
        found = read_json(path)
    except (OSError, FormatError):
        return None
    return found if isinstance(found, dict) and {"key", "seconds", "result"} <= found.keys() else None
