"""Carry out a run: select the data, add noise, train, encode and score; :func:`measure` returns the result."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rmsh import pipeline
from rmsh.codes import Codes
from rmsh.compare.provenance import code_hash, forget_peak_memory, machine, peak_memory_mb, versions
from rmsh.compare.result import Result, compact, head, pack_scores
from rmsh.compare.run import Run, method_of, unit_rows
from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES, Direction, Modality
from rmsh.data.pairs import Pairs, moments
from rmsh.data.splits import Split, fingerprint_ids
from rmsh.features.extract import encode_pairs
from rmsh.metrics.audit import audit_bits
from rmsh.metrics.counterparts import RECALL_RANKS, rank_vectors, recall_score
from rmsh.metrics.directions import evaluate_directions, modalities, select_direction
from rmsh.metrics.evaluate import Definitions, Score, Scores, score_vectors
from rmsh.metrics.histogram import LabelledCodes, histograms
from rmsh.retrieval_set import draw_queries

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rmsh.data.open import Opened
    from rmsh.methods.base import Method

_DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")
_MOST_SHARED = 3  # pairs that share this many labels or more are one group
_RELAXED_QUERIES = 1000  # queries that are also ranked by relaxed values, which takes a sort each


@dataclass(frozen=True, eq=False)
class Parts:
    """Training pairs, queries and database of a run, the rows they come from, and the hash of the whole data."""

    train: Pairs
    query: Pairs
    database: Pairs
    split: Split
    sha256: str

    @property
    def among_themselves(self) -> bool:
        """Whether the queries are ranked among themselves, because the split has no database."""
        return not len(self.split.database)


def split_of(run: Run, opened: Opened) -> Split:
    """The rows of a run; queries are drawn if the data has no split."""
    pairs = opened.pairs
    whole = opened.split or draw_queries(len(pairs), None)[0]
    split = pipeline.for_protocol(replace(opened, split=whole), run.protocol, validation=run.validation).split or whole
    complete = pairs.has_image & pairs.has_text
    if not complete.all():  # an item without a modality cannot be evaluated in both directions
        split = Split(split.name, *(rows[complete[rows]] for rows in (split.database, split.query, split.train)))
    if run.train is None:
        return split
    if run.train > len(split.train):
        raise DataError(f"The run needs {run.train:,} training pairs; {opened.name} has {len(split.train):,}.")
    # The same rows for every seed, so that runs differ only in what is learned.
    selected = np.sort(np.random.default_rng(0).permutation(split.train)[: run.train])
    if run.validation and np.array_equal(split.train, split.database):
        # In the final runs the database is the training set, which favours methods that memorise it. The trials that
        # select options must favour them in the same way.
        return replace(split, train=selected, database=selected)
    return replace(split, train=selected)


def parts_of(run: Run, opened: Opened, *, cache: Path | None = None, on_progress: OnProgress = ignore) -> Parts:
    """Compute features and select the parts of a run, with its noise; ``cache`` is a folder that keeps features."""
    if opened.pairs.labels is None:
        raise DataError(f"{opened.name} has no labels, which scores are computed from; add labels to these pairs.")
    split = split_of(run, opened)
    names = {**pipeline.DEFAULT_ENCODERS, "text": run.text}
    encoders = pipeline.prepare_encoders(opened.pairs, names, rows=split.train)
    pairs = encode_pairs(opened.pairs, encoders, cache=cache, on_progress=on_progress)
    train = pairs.take(split.train)
    # Usually the database is the training set: a second copy would cost hundreds of megabytes.
    database = train if np.array_equal(split.train, split.database) else pairs.take(split.database)
    query = pairs.take(split.query)
    if not len(split.database):
        database = query
    query = disturb_features(query, "image", run.image_noise, seed=run.seed)
    query = disturb_features(query, "text", run.text_noise, seed=run.seed)
    return Parts(with_noisy_labels(train, run.label_noise, seed=run.seed), query, database, split, fingerprint(pairs))


def with_noisy_labels(pairs: Pairs, share: float, *, seed: int) -> Pairs:
    """The same pairs; the label sets of a share of the items are rotated among them, so class frequencies stay."""
    if not share:
        return pairs
    labels = np.asarray(pairs.labels)
    selected = np.random.default_rng(seed).permutation(len(labels))[: round(share * len(labels))]
    noisy = labels.copy()
    noisy[selected] = labels[np.roll(selected, 1)]
    return replace(pairs, labels=noisy)


def disturb_features(pairs: Pairs, modality: Modality, strength: float, *, seed: int) -> Pairs:
    """The same pairs with normal noise on each feature of a modality, ``strength`` times the feature's deviation."""
    if not strength:
        return pairs
    features = pairs.features(modality)
    if not isinstance(features, np.ndarray):
        raise DataError(f"{pairs.source}: the {modality} features are sparse; noise needs dense features.")
    _, deviation = moments(features)
    noise = np.random.default_rng(seed).standard_normal(features.shape, dtype=np.float32)
    return pairs.with_column(modality, features + noise * (strength * deviation).astype(np.float32))


def fingerprint(pairs: Pairs) -> str:
    """SHA-256 of the ids, labels and features of all pairs."""
    digest = hashlib.sha256("\n".join(map(str, pairs.ids)).encode())
    digest.update(np.ascontiguousarray(pairs.labels).tobytes())
    for modality in MODALITIES:
        features = pairs.features(modality)
        arrays = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def measure(run: Run, opened: Opened, *, cache: Path | None = None, on_progress: OnProgress = ignore) -> Result:
    """Train, encode and score; returns the content of a result file. ``cache`` is a folder that keeps features."""
    parts = parts_of(run, opened, cache=cache, on_progress=on_progress)
    method = method_of(run)
    forget_peak_memory()  # reading the data takes more memory than keeping it
    before, clock = peak_memory_mb(), Stopwatch()
    method.fit(parts.train, on_progress=on_progress)
    clock.lap("fit")
    after = peak_memory_mb()
    score = score_codes if run.bits else _score_reference
    scores = score(method, parts, clock, run)
    split: dict[str, Any] = {"name": parts.split.name, "sha256": parts.split.sha256}
    if run.protocol == "unseen":
        split["held_out"] = fingerprint_ids(parts.database.ids)
    facts = dict(method.model.facts)
    history = compact(facts.pop("history", []), digits=5)
    return {
        **head(run, "done"),
        "method_version": getattr(method, "version", 1),
        "code_hash": code_hash(type(method)),
        "data": parts.sha256,
        "config": method.config.model_dump(mode="json"),
        "training_pairs": len(parts.train),
        "split": split,
        **scores,
        "facts": compact(facts),
        "history": history,
        "seconds": clock.seconds,
        "memory_mb": {"before": before, "after": after},
        "peak_memory_mb": after,
        "versions": versions(),
        "machine": machine(),
    }


class Stopwatch:
    """Wall-clock and CPU seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def lap(self, name: str) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.seconds |= {name: round(wall - self._wall, 2), f"{name}_cpu": round(cpu - self._cpu, 2)}
        self._wall, self._cpu = wall, cpu


def score_codes(method: Method, parts: Parts, clock: Stopwatch, run: Run) -> dict[str, Any]:
    """The scores of a fitted method and the facts about its codes, as in a result file."""
    labels = np.asarray(parts.query.labels), np.asarray(parts.database.labels)
    query = {
        m: LabelledCodes(method.encode(parts.query.features(m), m, ids=parts.query.ids), labels[0]) for m in MODALITIES
    }
    database = {m: LabelledCodes(method.encode_database(parts.database, m), labels[1]) for m in MODALITIES}
    clock.lap("encode")
    options: dict[str, Any] = {"k": run.ranks, "recall": RECALL_RANKS, "leave_own_out": parts.among_themselves}
    scores = evaluate_directions(query, database, directions=_DIRECTIONS, per_query=True, **options)
    prefixes = {}
    for bits in run.prefixes:
        sides = (
            {m: LabelledCodes(s.codes.prefix(bits), s.labels) for m, s in side.items()} for side in (query, database)
        )
        prefixes[str(bits)] = _named(evaluate_directions(*sides, directions=_DIRECTIONS, **options))
    clock.lap("evaluate")
    first = scores[_DIRECTIONS[0]]
    ndcg = first.definitions.names()["ndcg"].lower()
    relaxed = _score_relaxed(method, parts, database, scores)
    clock.lap("relaxed")
    return {
        "definitions": first.definitions.describe() | {"relaxed": _RELAXED},
        "scores": _named(scores),
        "relaxed": relaxed,
        "prefixes": prefixes,
        "queries": {d: {"asked": s.queries, "dropped": s.dropped, "database": s.database} for d, s in scores.items()},
        "per_query": {d: {ndcg: pack_scores(s.per_query["ndcg"])} for d, s in scores.items() if s.per_query},
        "curves": {
            d: {
                "rank": s.rank_curve.at.tolist(),
                "recall": compact(s.rank_curve.recall.tolist()),
                "precision": compact(s.rank_curve.precision.tolist()),
            }
            for d, s in scores.items()
        },
        "distances": {d: distances(*select_direction(query, database, d)) for d in _DIRECTIONS},
        "audit": {m: compact(audit_bits(side.codes).to_json(), digits=4) for m, side in database.items()},
    }


_RELAXED = f"the first {_RELAXED_QUERIES:,} queries, by codes and by the cosine of the values before the sign"


def _score_relaxed(
    method: Method, parts: Parts, codes: Mapping[Modality, LabelledCodes], scores: Mapping[Direction, Scores]
) -> dict[str, Any]:
    """NDCG and mAP of the first queries by database codes and by relaxed values; empty if codes are not their signs."""
    values = {m: method.project(parts.database.features(m), m) for m in MODALITIES}
    if any(not np.array_equal(Codes.from_values(values[m]).packed, codes[m].codes.packed) for m in MODALITIES):
        return {}  # such as codes from labels, or from both modalities
    result: dict[str, Any] = {}
    first = slice(_RELAXED_QUERIES)
    for direction, by_codes in scores.items():
        (one, other), definitions = modalities(direction), by_codes.definitions
        found = score_vectors(
            unit_rows(method.project(parts.query.features(one)[first], one)),
            unit_rows(values[other]),
            np.asarray(parts.query.labels)[first],
            codes[other].labels,
            k=(definitions.k, *definitions.further_k),
            leave_own_out=parts.among_themselves,
        )
        names = {key: name.lower() for key, name in definitions.names().items() if key in found}
        result[direction] = {"queries": len(found["ndcg"])} | {
            kind: {name: compact(float(np.nanmean(by[key][first]))) for key, name in names.items()}
            for kind, by in (("codes", by_codes.per_query), ("values", found))
        }
    return result


def _named(scores: Mapping[Direction, Scores]) -> dict[str, Any]:
    """The scores of a result file: by direction and name."""
    return {d: {n.lower(): compact(asdict(score)) for n, score in s.by_name().items()} for d, s in scores.items()}


def distances(query: LabelledCodes, database: LabelledCodes) -> dict[str, list[int]]:
    """The number of pairs at each distance, for pairs that share 0, 1, 2, and 3 or more labels.

    Example:
        >>> from rmsh.codes import Codes
        >>> one = LabelledCodes(Codes.from_values([[1, 1]]), [[1, 0]])
        >>> two = LabelledCodes(Codes.from_values([[1, 1], [1, -1]]), [[1, 1], [0, 1]])
        >>> distances(one, two)
        {'0': [0, 1, 0], '1': [1, 0, 0], '2': [0, 0, 0], '3+': [0, 0, 0]}
    """
    blocks = histograms(query.codes, database.codes, query_labels=query.labels, database_labels=database.labels)
    # int64 (bits + 1, R + 1): the sum of the histograms of all queries
    counts = np.sum([block.sum(axis=0, dtype=np.int64) for block in blocks], axis=0)
    counts = np.pad(counts, ((0, 0), (0, max(0, _MOST_SHARED + 1 - counts.shape[1]))))
    groups = [*counts[:, :_MOST_SHARED].T, counts[:, _MOST_SHARED:].sum(axis=1)]
    names = [*map(str, range(_MOST_SHARED)), f"{_MOST_SHARED}+"]
    return {name: group.tolist() for name, group in zip(names, groups, strict=True)}


def _score_reference(method: Method, parts: Parts, clock: Stopwatch, run: Run) -> dict[str, Any]:
    """The scores of a reference line in the form of score_codes; without ties both bounds are the value."""
    query, database, line = parts.query, parts.database, cast("Any", method)
    queries = {m: line.vectors(query.features(m), m) for m in MODALITIES}
    items = {m: line.vectors(database.features(m), m) for m in MODALITIES}
    clock.lap("encode")
    labels = np.asarray(query.labels), np.asarray(database.labels)
    definitions = Definitions(k=run.ranks[0], further_k=run.ranks[1:])
    names = definitions.names()
    result: dict[str, Any] = {"definitions": definitions.describe(), "scores": {}, "queries": {}, "per_query": {}}
    for direction in _DIRECTIONS:
        one, other = modalities(direction)
        values = score_vectors(queries[one], items[other], *labels, k=run.ranks, leave_own_out=parts.among_themselves)
        means = {key: float(np.nanmean(array)) for key, array in values.items()}
        scores = {
            name: Score(means[kind], means[kind], means[kind], means[f"{kind}_chance"])
            for kind, name in names.items()
            if kind in means
        }
        places = rank_vectors(queries[one], queries[other])
        scores |= {f"recall@{k}": recall_score(places, k) for k in RECALL_RANKS}
        result["scores"][direction] = {name.lower(): compact(asdict(score)) for name, score in scores.items()}
        result["queries"][direction] = {
            "asked": len(query),
            "dropped": int(np.isnan(values["ndcg"]).sum()),
            "database": len(database) - parts.among_themselves,
        }
        result["per_query"][direction] = {names["ndcg"].lower(): pack_scores(values["ndcg"])}
    clock.lap("evaluate")
    return result
