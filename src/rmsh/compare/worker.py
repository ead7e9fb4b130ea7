"""One run in a process of its own: parameters come as JSON on standard input, the result goes to its file.

A run that fails leaves a result that says so. A process that is killed leaves none; whoever started it knows.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rmsh.compare.grid import Run
from rmsh.compare.measure import measure
from rmsh.compare.result import failure, write_result
from rmsh.core.errors import RmshError
from rmsh.data.open import open_pairs
from rmsh.features.extract import cache_folder


def carry_out(run: Run, data: str) -> dict[str, Any]:
    """The result of a run on data named as for ``open_pairs``, or of its failure.

    Example:
        >>> carry_out(Run("generated", "scm", bits=8, options={"rigde": 1}), "generated:60")["error"]
        "The option 'rigde' is unknown; did you mean 'ridge'?"
    """
    started = time.monotonic()
    try:
        result = measure(run, open_pairs(data), cache=cache_folder())
    except RmshError as error:
        return failure(run, str(error), time.monotonic() - started)
    except Exception as error:
        return failure(run, f"{type(error).__name__}: {error}", time.monotonic() - started)
    result["seconds"]["total"] = round(time.monotonic() - started, 2)
    return result


def main() -> None:
    """Read what to do, do it, write the result."""
    task = json.load(sys.stdin)
    write_result(Path(task["path"]), carry_out(Run.from_json(task["run"]), task["data"]))


if __name__ == "__main__":
    main()
