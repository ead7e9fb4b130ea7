"""Carry out a run: learn, code, score. The outcome is what its result file holds, see result.py."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rmsh.experiments.parts import Parts, parts_of
from rmsh.experiments.process import forget_peak_memory, machine, peak_memory_mb, versions
from rmsh.experiments.references import REFERENCES
from rmsh.experiments.result import FORMAT, audited, compact, distances, scored, scored_vectors
from rmsh.experiments.vector_scores import score_vectors
from rmsh.methods import create
from rmsh.metrics.audit import audit_bits
from rmsh.metrics.directions import evaluate_directions, modalities, pick
from rmsh.metrics.labelled import LabelledCodes
from rmsh.progress import OnProgress, ignore
from rmsh.types import MODALITIES

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.data.open import Opened
    from rmsh.experiments.references import Reference
    from rmsh.experiments.run import Run
    from rmsh.methods.base import Method
    from rmsh.types import Direction

__all__ = ["measure", "method_of"]

_DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")


def measure(run: Run, opened: Opened, *, cache: Path | None = None, on_progress: OnProgress = ignore) -> dict[str, Any]:
    """Learn, code and score; returns what a result file holds.

    Args:
        run: what is to be done.
        opened: the data, as ``open_pairs`` gives it.
        cache: a folder where features are kept.
        on_progress: is told how far it is.

    Example:
        >>> from rmsh.data.open import open_pairs
        >>> from rmsh.experiments.run import Run
        >>> result = measure(Run("generated", "cca-itq", bits=16), open_pairs("generated:200"))
        >>> result["status"], result["scores"]["i2t"]["ndcg@500"]["value"] > 0.5
        ('done', True)
    """
    parts = parts_of(run, opened, cache=cache, on_progress=on_progress)
    method = method_of(run)
    forget_peak_memory()  # reading the data took more than keeping it
    before, clock = peak_memory_mb(), _Stopwatch()
    method.fit(parts.train, on_progress=on_progress)
    clock.lap("fit")
    after = peak_memory_mb()
    score = _score_codes if run.bits else _score_reference
    scores = score(method, parts, clock, k=run.k)
    facts = dict(method.model.facts)
    history = compact(facts.pop("history", []), digits=5)
    return {
        "format": FORMAT,
        "status": "done",
        "run": run.to_json(),
        "config": method.config.model_dump(mode="json"),
        "training_pairs": len(parts.train),
        "split": {"name": parts.split.name, "sha256": parts.split.sha256},
        **scores,
        "facts": compact(facts),
        "history": history,
        "seconds": clock.seconds,
        "memory_mb": {"before": before, "after": after},
        "peak_memory_mb": after,
        "versions": versions(),
        "machine": machine(),
    }


class _Stopwatch:
    """Seconds by the clock and of the processor, lap by lap."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def lap(self, name: str) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        self.seconds[name] = round(wall - self._wall, 2)
        self.seconds[f"{name}_cpu"] = round(processor - self._processor, 2)
        self._wall, self._processor = wall, processor


def method_of(run: Run) -> Method:
    """The method or the reference line of a run, with its options; nothing is learned yet.

    Raises:
        ConfigError: a name, a preset or an option is unknown, or a value is out of range.
    """
    if run.bits:
        return create(run.method, preset=run.preset, bits=run.bits, seed=run.seed, **run.options)
    reference: type[Method] = REFERENCES.load(run.method)
    return reference(preset=run.preset, seed=run.seed, **run.options)


def _score_codes(method: Method, parts: Parts, clock: _Stopwatch, *, k: int) -> dict[str, Any]:
    query, database = parts.query, parts.database
    asking = {
        m: LabelledCodes(method.encode(query.features(m), m, ids=query.ids), np.asarray(query.labels))
        for m in MODALITIES
    }
    searched = {m: LabelledCodes(method.encode_database(database, m), np.asarray(database.labels)) for m in MODALITIES}
    clock.lap("encode")
    scores = evaluate_directions(asking, searched, directions=_DIRECTIONS, k=k, per_query=True)
    clock.lap("evaluate")
    return {
        **scored(scores),
        "distances": {direction: distances(*pick(asking, searched, direction)) for direction in _DIRECTIONS},
        "audit": {m: audited(audit_bits(codes.codes)) for m, codes in searched.items()},
    }


def _score_reference(method: Method, parts: Parts, clock: _Stopwatch, *, k: int) -> dict[str, Any]:
    query, database, line = parts.query, parts.database, cast("Reference", method)
    vectors = {m: [line.vectors(side.features(m), m) for side in (query, database)] for m in MODALITIES}
    clock.lap("encode")
    scores = {
        direction: score_vectors(
            vectors[asking][0], vectors[asked][1], np.asarray(query.labels), np.asarray(database.labels), k=k
        )
        for direction, (asking, asked) in ((d, modalities(d)) for d in _DIRECTIONS)
    }
    clock.lap("evaluate")
    return scored_vectors(scores, k=k, database=len(database))
