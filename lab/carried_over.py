"""Results that a change of code cannot have changed: lab/results/carried_over.json lists such changes with evidence.

    method                 the method whose code was changed
    before, after          its version and the hash of its code, see rmsh.compare.provenance
    least_training_pairs   results of at least this many training pairs are carried over
    reason                 what was changed, and why these results are the same
    evidence               what was run with both, and what was equal

Options that were added with a default that changes nothing are listed, too (`neutral_options`): results without them do
not count as made with other defaults.

A result made with `before` counts as made with `after`, and is current if that is the code of today; any further change
needs an entry of its own. The result files stay as they were written: they name the commit and the code that made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lab.data import RESULTS
from rmsh.compare.result import changed_options
from rmsh.compare.result import stale_reason as reason_of
from rmsh.core.files import read_json

FILE = RESULTS / "carried_over.json"
_MADE_WITH = ("method_version", "code_hash")


def stale_reason(result: Mapping[str, Any], file: Path = FILE) -> str | None:
    """Why the current code would not give this result; None if it is current, or carried over to the current code."""
    return reason_of(_carried(result, file))


def earlier(results: Sequence[Mapping[str, Any]], file: Path = FILE) -> dict[str, tuple[int, int]]:
    """By method with such results: how many the current code would not give, and the number of all.

    Such results have another version or other code of their method, or other defaults than it has now.
    """
    of_method: dict[str, list[bool]] = {}
    for result in results:
        carried = _carried(result, file)
        changed = set(changed_options(result)) - {*_neutral(file)} and carried == result
        of_method.setdefault(result["run"]["method"], []).append(reason_of(carried) is not None or bool(changed))
    return {name: (sum(stale), len(stale)) for name, stale in of_method.items() if any(stale)}


def _carried(result: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The result as if it was made with the code that it is carried over to."""
    carried = dict(result)
    for change in _changes(file):  # in the order in which they were made
        if _applies(change, carried):
            carried |= change["after"]
    return carried


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


@cache
def _neutral(file: Path) -> dict[str, str]:
    """Options by the reason why their default changes nothing."""
    return dict(read_json(file).get("neutral_options", {})) if file.is_file() else {}
