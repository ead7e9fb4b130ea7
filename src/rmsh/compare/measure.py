"""Carry out a run: learn, code, score. The outcome is what its result file holds, see result.py.

The parts of the data that a run needs: what it learns from, what asks, what is searched; all with features.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rmsh import pipeline
from rmsh.compare.machine import forget_peak_memory, machine, peak_memory_mb, versions
from rmsh.compare.noise import disturb_features, with_noisy_labels
from rmsh.compare.references import REFERENCES
from rmsh.compare.result import FORMAT, audited, compact, distances, scored, scored_vectors
from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES
from rmsh.data.splits import Split, hold_out_validation
from rmsh.methods import create
from rmsh.metrics.audit import audit_bits
from rmsh.metrics.directions import evaluate_directions, modalities, pick
from rmsh.metrics.relevance import LabelledCodes
from rmsh.metrics.vectors import score_vectors
from rmsh.retrieval_set import draw_queries

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.compare.grid import Run
    from rmsh.compare.references import Reference
    from rmsh.core.types import Direction
    from rmsh.data.open import Opened
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import Method


@dataclass(frozen=True, eq=False)
class Parts:
    """The three parts of the data of a run, and the rows they are."""

    train: Pairs
    query: Pairs
    database: Pairs
    split: Split


def split_of(run: Run, opened: Opened) -> Split:
    """The rows a run learns from, asks and searches; where the data has no split, queries are drawn.

    Raises:
        DataError: there are fewer training pairs than the run asks for.
    """
    pairs, split = opened.pairs, opened.split or draw_queries(len(opened.pairs), None)[0]
    split = hold_out_validation(split) if run.validation else split
    complete = pairs.has_image & pairs.has_text
    if not complete.all():  # an item without a modality can neither ask nor be found in both directions
        split = Split(split.name, *(rows[complete[rows]] for rows in (split.database, split.query, split.train)))
    if run.train is None:
        return split
    if run.train > len(split.train):
        raise DataError(
            f"{run.train:,} training pairs were asked for, but {opened.name} has {len(split.train):,}; ask for fewer."
        )
    # The same rows whatever the seed, so that runs differ by what is learned alone.
    chosen = np.sort(np.random.default_rng(0).permutation(split.train)[: run.train])
    if run.validation and np.array_equal(split.train, split.database):
        # What is searched is what is learned from, as it will be where it counts: a method that knows its training
        # pairs by heart profits there, and must do so where options are chosen.
        return replace(split, train=chosen, database=chosen)
    return replace(split, train=chosen)


def parts_of(run: Run, opened: Opened, *, cache: Path | None = None, on_progress: OnProgress = ignore) -> Parts:
    """Features for the data, and its parts, with the noise that the run asks for.

    Args:
        run: what is to be done.
        opened: the data, as ``open_pairs`` gives it.
        cache: a folder where features are kept: they are made once for all runs.
        on_progress: is told how far it is.

    Raises:
        DataError: as for :func:`split_of`; or noise is asked for in what is not there.
    """
    if opened.pairs.labels is None:
        raise DataError(f"{opened.name} has no labels, and scores are made of them; give labels for these pairs.")
    split = split_of(run, opened)
    learned = replace(opened, split=split)  # encoders that learn words see training pairs only
    encoders = pipeline.prepare_encoders(learned, {**pipeline.DEFAULT_ENCODERS, "text": run.text})
    pairs = pipeline.encode_raw(opened.pairs, encoders, cache=cache, on_progress=on_progress)
    train = pairs.take(split.train)
    # Mostly the whole database is learned from: a second copy would cost hundreds of megabytes.
    database = train if np.array_equal(split.train, split.database) else pairs.take(split.database)
    query = disturb_features(pairs.take(split.query), "image", run.image_noise, seed=run.seed)
    query = disturb_features(query, "text", run.text_noise, seed=run.seed)
    return Parts(with_noisy_labels(train, run.label_noise, seed=run.seed), query, database, split)


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
        >>> from rmsh.compare.grid import Run
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
