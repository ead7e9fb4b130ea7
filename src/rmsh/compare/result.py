"""The result file of a run: one JSON object with everything needed to explain its numbers, 15 to 40 kB.

    format          3
    status          "done" or "failed"; a failed run has only format, status, run, commit, error, seconds and versions
    error           reason of a failure, one sentence
    run             all parameters of the run, see run.py
    commit          commit of the checkout, or "rmsh VERSION" for an installed package
    method_version  version of the method; it changes when the method learns something else from the same options
    code_hash       hash of the code of the method, see provenance.py; "carried over" if it was not recorded
    data            SHA-256 of ids, labels and features; None if it was not recorded
    config          full configuration of the method, defaults included
    training_pairs  number of training pairs
    split           name and sha256 of the rows of queries, database and training pairs; in the protocol unseen also
                    held_out: count and sha256 of the ids of the database
    definitions     what each score means, in words
    scores          scores[direction][name] = {value, pessimistic, optimistic, chance}; directions are "i2t" and "t2i",
                    names "ndcg@500", "map@all", "p@500", "p(d<=2)", "recall@1", "recall@5" and "recall@10", in the
                    protocol unseen "ndcg@10" and "ndcg@100"; value is the mean over queries, expected over the order of
                    ties, with its bounds; chance is the value of a random ranking
    prefixes        prefixes[bits] = scores of the first bits of the codes
    queries         queries[direction] = {asked, dropped, database}
    per_query       per_query[direction]["ndcg@500"], in the order of the split's queries, see pack_scores
    curves          curves[direction] = {rank, recall, precision}, three lists of about 50 numbers at most
    distances       distances[direction][r], r = "0", "1", "2", "3+": number of pairs of a query and a database item
                    with r shared labels at Hamming distance 0, 1, ... bits
    audit           audit[modality], of the database codes: items, bits, ones (the share of 1 in each bit), dead,
                    nearly_constant, duplicates, mean_correlation, distinct, largest_bucket
    facts           what the method found while learning, such as delta and the number of epochs
    history         mean of each loss term, one entry per epoch
    seconds         fit (wall clock), fit_cpu (all threads), encode, evaluate; total includes reading the data
    memory_mb       memory of the run's process: in use before training, and the peak during training
    peak_memory_mb  the latter
    versions, machine

Files of format 2 have no run.protocol, which was always "paper". Their key "unseen" has the scores of every other query
as the database of the rest.

Reference lines, whose bits are 0, have no curves, distances and audit, and no scores that need a distance. The
study of GLINT adds scores for "i2i" and "t2t", and relaxed[direction] = {queries, codes, values}: NDCG and mAP of the
first queries, ranked by codes and by the values before the sign. A key that is missing was not measured.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmsh import __version__
from rmsh.compare.provenance import code_hash, commit, versions
from rmsh.compare.references import class_of, method_of
from rmsh.compare.run import Run
from rmsh.core.errors import FormatError
from rmsh.core.files import read_json, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rmsh.core.types import ScoreArray

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
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}" for key, value in result.items()
    )
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
