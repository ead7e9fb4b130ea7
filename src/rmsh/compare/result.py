"""The result file of a run: one JSON object that explains its numbers; docs/reference/formats.md lists its keys."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmsh import __version__
from rmsh.compare.provenance import code_hash, commit, versions
from rmsh.compare.run import Run, class_of, method_of
from rmsh.core.errors import FormatError
from rmsh.core.files import read_json, write_text
from rmsh.core.types import ScoreArray

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


Result: TypeAlias = dict[str, Any]

FORMAT = 3
CARRIED_OVER = "carried over"
# What files of format 1 did not record.
_UNRECORDED = {"commit": None, "method_version": 1, "code_hash": CARRIED_OVER, "data": None}
_LEVELS, _DROPPED = 254, 255


def pack_scores(values: ScoreArray) -> str:
    """Scores (Q,) between 0 and 1 as base64, one byte per query: steps of 1/254, and 255 for a dropped query (NaN).

    Scores of single queries allow a paired test of two methods, which says more than two means.

    Example:
        >>> unpack_scores(pack_scores(np.array([0.0, 0.5, 1.0, np.nan])))
        array([0. , 0.5, 1. , nan])
    """
    levels = np.where(np.isnan(values), _DROPPED, np.round(np.nan_to_num(values) * _LEVELS))
    return base64.b64encode(levels.astype(np.uint8).tobytes()).decode()


def unpack_scores(text: str) -> ScoreArray:
    """Undo :func:`pack_scores`, except for the rounding."""
    levels = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.where(levels == _DROPPED, np.nan, levels / _LEVELS)


def compact(value: Any, *, digits: int = 6) -> Any:
    """The same value with its numbers rounded to some significant digits.

    Example:
        >>> compact({"a": [0.123456789, 2], "b": "text"})
        {'a': [0.123457, 2], 'b': 'text'}
    """
    if isinstance(value, dict):
        return {name: compact(part, digits=digits) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [compact(part, digits=digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def head(run: Run, status: str) -> Result:
    """The first keys of every result."""
    made_by = commit() or f"rmsh {__version__}"
    return {"format": FORMAT, "status": status, "run": run.to_json(), "commit": made_by}


def failure(run: Run, error: str, seconds: float) -> Result:
    """The result of a run that failed."""
    return {**head(run, "failed"), "error": error, "seconds": {"total": round(seconds, 1)}, "versions": versions()}


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result atomically, one line per key."""
    values = {key: json.dumps(value, ensure_ascii=False, allow_nan=False) for key, value in result.items()}
    lines = (f"{json.dumps(key)}: {value}" for key, value in values.items())
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_result(path: Path) -> Result:
    """Read a result; files of earlier formats get the keys that they did not record."""
    result = read_json(path)
    if not isinstance(result, dict) or not {"format", "status", "run"} <= result.keys():
        raise FormatError(f"{path} is not the result of a run; remove it, or give another folder.")
    if result["format"] > FORMAT:
        raise FormatError(f"{path} has format {result['format']}; this rmsh reads up to {FORMAT}. Upgrade rmsh.")
    if result["format"] == FORMAT:
        return result
    return {**_UNRECORDED, **result, "run": {"protocol": "paper", "prefixes": [], **result["run"]}}


def with_prefixes(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A result and those of its code prefixes, each like that of a run with fewer bits and ``prefix_of``."""
    whole = {key: value for key, value in result.items() if key in ("status", "seconds", "peak_memory_mb", "queries")}
    run = result["run"]
    return [result] + [
        {**whole, "run": {**run, "bits": int(bits), "prefix_of": run["bits"]}, "scores": scores}
        for bits, scores in result.get("prefixes", {}).items()
    ]


def stale_reason(result: Mapping[str, Any]) -> str | None:
    """Why the current code would not give this result, in one sentence; None if it is current, or if the run failed."""
    if result["status"] != "done":
        return None
    run = Run(**result["run"])
    cls = class_of(run)
    current = getattr(cls, "version", 1)
    if result["method_version"] != current:
        return f"{run.path} has version {result['method_version']} of {run.method}; the current version is {current}."
    recorded = result["code_hash"]
    if recorded not in (None, CARRIED_OVER) and recorded != code_hash(cls):
        return f"{run.path} was made at {result['commit']}; the code of {run.method} has changed since."
    return None


def changed_options(result: Mapping[str, Any]) -> list[str]:
    """The options of a result's method that have another default now, or that did not exist when it was made."""
    now = method_of(Run(**result["run"])).config.model_dump(mode="json")
    before = result.get("config", now)
    absent = object()
    return sorted(name for name in now | before if now.get(name, absent) != before.get(name, absent))
