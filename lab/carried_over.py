"""Results that a change of code cannot have changed: lab/results/carried_over.json lists such changes with evidence.

    method                 the method whose code was changed
    before, after          its version and the hash of its code, see rmsh.compare.provenance
    least_training_pairs   results of at least this many training pairs are carried over
    reason                 what was changed, and why these results are the same
    evidence               what was run with both, and what was equal

A result made with `before` counts as made with `after`, and is current if that is the code of today; any further change
needs an entry of its own. The result files stay as they were written: they name the commit and the code that made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lab.data import RESULTS
from rmsh.compare.result import stale_reason as reason_of
from rmsh.core.files import read_json

FILE = RESULTS / "carried_over.json"
_MADE_WITH = ("method_version", "code_hash")


def stale_reason(result: Mapping[str, Any], file: Path = FILE) -> str | None:
    """Why the current code would not give this result; None if it is current, or carried over to the current code."""
    carried = dict(result)
    for change in _changes(file):  # in the order in which they were made
        if _applies(change, carried):
            carried |= change["after"]
    return reason_of(carried)


def _applies(change: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    return (
        result["status"] == "done"
        and result["run"]["method"] == change["method"]
        and all(result.get(key) == change["before"][key] for key in _MADE_WITH)
        and result.get("training_pairs", 0) >= change["least_training_pairs"]
    )


@cache
def _changes(file: Path) -> list[dict[str, Any]]:
    return list(read_json(file)["changes"]) if file.is_file() else []
