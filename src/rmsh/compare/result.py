"""The file a run leaves: one JSON value with everything needed to explain its numbers.

A file is compact JSON of 15 to 40 kB. Its keys:

    format          1
    status          "done" or "failed"; a failed run has format, status, run, error, seconds and versions only
    error           of a failed run: one sentence
    run             all parameters of the run, see run.py
    config          the full configuration of the method, defaults included
    training_pairs  how many pairs were learned from
    split           name and sha256 of the rows that ask, are searched and are learned from
    definitions     what each score means, in words
    scores          scores[direction][name] = {value, pessimistic, optimistic, chance}; directions are "i2t" and "t2i",
                    names "ndcg@500", "map@all", "p@500" and "p(d<=2)"; value is the mean over queries, expected over
                    the order of ties, the next two are its bounds, chance is that of a random ranking
    queries         queries[direction] = {asked, dropped, database}
    per_query       per_query[direction]["ndcg@500"], in the order of the split's queries, see per_query.py
    curves          curves[direction] = {rank, recall, precision}, three lists of at most about 50 numbers
    distances       distances[direction][r], r = "0", "1", "2", "3+": of the pairs of a query and a database item that
                    share r labels, how many lie at Hamming distance 0, 1, .. bits
    audit           audit[modality], of the database's codes: items, bits, ones (the share of 1 in each bit), dead,
                    nearly_constant, duplicates, mean_correlation, distinct, largest_bucket
    facts           what the method found while learning, such as delta, the epochs and the original's epochs
    history         the mean of each loss term, an entry an epoch
    seconds         fit (by the clock), fit_cpu (of all threads), encode, evaluate; total, with the data
    memory_mb       of the run's own process: in use before learning, with the data; and the peak while it learned
    peak_memory_mb  the latter
    versions, machine

A reference line, whose bits are 0, has no curves, distances and audit, and no scores that need a distance. A key that
is missing was not measured.

Scores of single queries as a short text, so that a result file can hold them: a byte a query.

Two methods asked the same queries; a test of their difference query by query says more than two means.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.compare.machine import versions
from rmsh.core.errors import FormatError
from rmsh.core.files import read_json, write_text
from rmsh.metrics.evaluate import Definitions, Score
from rmsh.metrics.histogram import histograms

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rmsh.compare.grid import Run
    from rmsh.core.types import Direction, ScoreArray
    from rmsh.metrics.audit import BitAudit
    from rmsh.metrics.evaluate import Scores
    from rmsh.metrics.relevance import LabelledCodes

_STEPS, _DROPPED = 254, 255


def pack_scores(values: ScoreArray) -> str:
    """Scores (Q,) between 0 and 1 in steps of 1/254, NaN for a dropped query, as base64.

    Example:
        >>> unpack_scores(pack_scores(np.array([0.0, 0.5, 1.0, np.nan])))
        array([0. , 0.5, 1. , nan])
    """
    steps = np.where(np.isnan(values), _DROPPED, np.round(np.nan_to_num(values) * _STEPS))
    return base64.b64encode(steps.astype(np.uint8).tobytes()).decode()


def unpack_scores(text: str) -> ScoreArray:
    """Undo :func:`pack_scores`, but for the rounding."""
    steps = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.where(steps == _DROPPED, np.nan, steps / _STEPS)


FORMAT = 1
_MOST_SHARED = 3  # so many shared labels and more are one group


def scored(scores: Mapping[Direction, Scores]) -> dict[str, Any]:
    """The scores of all directions as a file has them, with what belongs to them."""
    first = next(iter(scores.values()))
    measure = first.definitions.names()["ndcg"].lower()
    return {
        "definitions": first.definitions.describe(),
        "scores": {d: {n.lower(): compact(asdict(v)) for n, v in s.named().items()} for d, s in scores.items()},
        "queries": {d: {"asked": s.queries, "dropped": s.dropped, "database": s.database} for d, s in scores.items()},
        "per_query": {
            d: {measure: pack_scores(s.per_query.values["ndcg"])} for d, s in scores.items() if s.per_query is not None
        },
        "curves": {
            d: {
                "rank": s.rank_curve.at.tolist(),
                "recall": compact(s.rank_curve.recall.tolist()),
                "precision": compact(s.rank_curve.precision.tolist()),
            }
            for d, s in scores.items()
        },
    }


def scored_vectors(scores: Mapping[Direction, Mapping[str, ScoreArray]], *, k: int, database: int) -> dict[str, Any]:
    """The scores of a reference line, (Q,) each, in the same form; nothing ties, so that both bounds are the value."""
    chosen = Definitions(k=k)
    result: dict[str, Any] = {"definitions": chosen.describe(), "scores": {}, "queries": {}, "per_query": {}}
    for direction, values in scores.items():
        result["scores"][direction] = {}
        for name in ("ndcg", "map"):
            value, chance = (float(np.nanmean(values[key])) for key in (name, f"{name}_chance"))
            score = Score(value, value, value, chance)
            result["scores"][direction][chosen.names()[name].lower()] = compact(asdict(score))
        dropped = int(np.isnan(values["ndcg"]).sum())
        result["queries"][direction] = {"asked": len(values["ndcg"]), "dropped": dropped, "database": database}
        result["per_query"][direction] = {chosen.names()["ndcg"].lower(): pack_scores(values["ndcg"])}
    return result


def distances(query: LabelledCodes, database: LabelledCodes) -> dict[str, list[int]]:
    """How many pairs lie at each distance, for pairs that share 0, 1, 2, and 3 or more labels.

    Example:
        >>> from rmsh.codes import Codes
        >>> from rmsh.metrics.relevance import LabelledCodes
        >>> one = LabelledCodes(Codes.from_values([[1, 1]]), [[1, 0]])
        >>> two = LabelledCodes(Codes.from_values([[1, 1], [1, -1]]), [[1, 1], [0, 1]])
        >>> distances(one, two)
        {'0': [0, 1, 0], '1': [1, 0, 0], '2': [0, 0, 0], '3+': [0, 0, 0]}
    """
    blocks = histograms(query.codes, database.codes, query_labels=query.labels, database_labels=database.labels)
    # int64 (bits + 1, R + 1): the histograms of all queries in one
    counts = np.sum([block.sum(axis=0, dtype=np.int64) for block in blocks], axis=0)
    counts = np.pad(counts, ((0, 0), (0, max(0, _MOST_SHARED + 1 - counts.shape[1]))))
    groups = [*counts[:, :_MOST_SHARED].T, counts[:, _MOST_SHARED:].sum(axis=1)]
    names = [*map(str, range(_MOST_SHARED)), f"{_MOST_SHARED}+"]
    return {name: group.tolist() for name, group in zip(names, groups, strict=True)}


def audited(audit: BitAudit) -> dict[str, Any]:
    """The audit of some codes with few digits."""
    values: dict[str, Any] = compact(audit.to_json(), digits=4)
    return values


def compact(value: Any, *, digits: int = 6) -> Any:
    """The same value, its numbers with at most so many significant digits.

    Example:
        >>> compact({"a": [0.123456789, 2], "b": "text"})
        {'a': [0.123457, 2], 'b': 'text'}
    """
    if isinstance(value, dict):
        return {name: compact(part, digits=digits) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [compact(part, digits=digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def failure(run: Run, error: str, seconds: float) -> dict[str, Any]:
    """What the file of a run that failed has."""
    told = {"run": run.to_json(), "error": error, "seconds": {"total": round(seconds, 1)}}
    return {"format": FORMAT, "status": "failed", **told, "versions": versions()}


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result, a line a key, whole or not at all."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}" for key, value in result.items()
    )
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_result(path: Path) -> dict[str, Any]:
    """Read a result.

    Raises:
        FormatError: the file is damaged, is no result, or is of a newer version.
    """
    result = read_json(path)
    if not isinstance(result, dict) or not {"format", "status", "run"} <= result.keys():
        raise FormatError(f"{path} is not the result of a run; remove it, or give another folder.")
    if result["format"] > FORMAT:
        raise FormatError(f"{path} has format {result['format']}, this rmsh reads up to {FORMAT}; upgrade rmsh.")
    return result
