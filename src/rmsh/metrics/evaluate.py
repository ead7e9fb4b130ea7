"""Evaluation in one pass: codes or vectors and labels in; scores with bounds, chance levels and curves out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from rmsh.core.config import Config
from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import BitArray, FloatArray, IntArray, LabelArray, ScoreArray
from rmsh.metrics import ranking
from rmsh.metrics.histogram import HistogramArray, histograms, random_ranking, shared_labels
from rmsh.metrics.ranking import ORDERS, Curve, Normaliser  # pydantic reads Normaliser when the class is created

if TYPE_CHECKING:
    from rmsh.codes import Codes

UNSEEN_RANKS = (10, 100)  # of NDCG in the protocol unseen: what a user looks at, and a rank that fits its database
_KINDS = ("ndcg", "map", "precision", "within")
_BLOCK = 8  # queries at a time, when vectors are compared


class Definitions(Config):
    """The parameters of the measures, and their definitions in words; both are stored in every result."""

    k: int = Field(default=500, ge=1)  # rank at which NDCG and precision are cut
    further_k: tuple[Annotated[int, Field(ge=1)], ...] = ()  # further ranks at which NDCG is cut
    map_k: int | None = Field(default=None, ge=1)  # rank at which mAP is cut; None ranks the whole database
    map_normaliser: Normaliser = "relevant"  # divisor of the sum of precisions, see ranking.py
    radius: int = Field(default=2, ge=0)  # Hamming radius of "precision within"

    def names(self) -> dict[str, str]:
        """The name of each score in a table."""
        return {
            "ndcg": f"NDCG@{self.k}",
            **{f"ndcg@{k}": f"NDCG@{k}" for k in self.further_k},
            "map": f"mAP@{self.map_k or 'all'}",
            "precision": f"P@{self.k}",
            "within": f"P(d<={self.radius})",
        }

    def describe(self) -> dict[str, str]:
        """Each definition as a sentence."""
        cut = "the whole ranking" if self.map_k is None else f"the first {self.map_k} items"
        return {
            "relevance": "two items are relevant to each other where they share at least one label",
            "ndcg": f"NDCG@{self.k}: gain 2^r - 1 for r shared labels, discount 1 / log2(1 + rank), ideal ranking of "
            "the whole database, mean over queries of the ratio; a rank beyond the database is its last",
            "map": f"mean over queries of the sum of precisions at relevant items in {cut}, divided by "
            f"{self.map_normaliser}",
            "precision": f"share of relevant items among the first {self.k}",
            "within": f"share of relevant items within Hamming distance {self.radius}; a query that finds nothing "
            "there counts 0",
            "recall": "recall@k: share of the queries whose own counterpart is among the first k of the counterparts "
            "of all queries, none of which was trained on",
            "ties": "expected value over all orders of items at equal distance; bounds are the worst and best order",
            "chance": "expected value for a random ranking; for precision within a radius, the share of relevant items "
            "in the database",
            "dropped": "queries without a relevant item in the database are left out of every mean",
            "curves": "macro: expected precision and recall of each query by rank, then the mean over queries",
        }


@dataclass(frozen=True)
class Score:
    """A mean over queries: expected over ties, in the worst and the best order of ties, and for a random ranking."""

    value: float
    pessimistic: float
    optimistic: float
    chance: float


@dataclass(frozen=True, eq=False)
class Scores:
    """The result of an evaluation, with everything needed to explain it."""

    definitions: Definitions
    bits: int
    database: int  # items
    queries: int  # including the dropped ones
    dropped: int  # queries without a relevant item
    ndcg: Score
    map: Score
    precision: Score
    within: Score
    empty_within: float  # share of the queries that find no item within the radius
    rank_curve: Curve
    # "ids", and each score of each query by name ("ndcg", "ndcg_pessimistic", "ndcg_optimistic", "ndcg_chance", ...),
    # all (Q,), with NaN for a dropped query; empty unless requested
    per_query: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    further: Mapping[str, Score] = field(default_factory=dict)  # NDCG at further ranks, and recall, by name

    def by_name(self) -> dict[str, Score]:
        """All scores by the names of their definitions."""
        names = self.definitions.names()
        return {names[kind]: getattr(self, kind) for kind in _KINDS} | dict(self.further)

    def named(self) -> dict[str, Score]:
        """All scores by their names in a table."""
        return {shown_name(name, self.database): score for name, score in self.by_name().items()}

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file, without the values per query."""
        plain = {name: getattr(self, name) for name in ("bits", "database", "queries", "dropped", "empty_within")}
        scores = {kind: asdict(getattr(self, kind)) for kind in _KINDS}
        scores["further"] = {name: asdict(score) for name, score in self.further.items()}
        curves = {"rank_curve": self.rank_curve.to_json()}
        settings = {"settings": self.definitions.model_dump(mode="json"), "definitions": self.definitions.describe()}
        return plain | scores | curves | settings


def shown_name(name: str, database: int) -> str:
    """The name of a score in a table: a cut beyond the last item of the database is not shown as one.

    Example:
        >>> shown_name("NDCG@500", 2000), shown_name("NDCG@500", 270)
        ('NDCG@500', 'NDCG@all')
    """
    kind, _, rank = name.partition("@")
    beyond = kind.lower() in ("ndcg", "p", "map") and rank.isdecimal() and int(rank) > database
    return f"{kind}@all" if beyond else name


def evaluate(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    *,
    k: int | Sequence[int] = 500,
    map_k: int | None = None,
    map_normaliser: Normaliser = "relevant",
    radius: int = 2,
    leave_own_out: bool = False,
    per_query: bool = False,
    on_progress: OnProgress = ignore,
) -> Scores:
    """Score how well queries find database items that share their labels.

    Args:
        query_codes: codes of Q queries.
        database_codes: codes of n items, of the same length.
        query_labels: 0/1 (Q, classes).
        database_labels: 0/1 (n, classes).
        k: rank at which NDCG and precision are cut; of several, all but the first are for NDCG only.
        map_k: rank at which mAP is cut; None ranks the whole database.
        map_normaliser: divisor of the sum of precisions: "relevant", "min(relevant,k)" or "hits".
        radius: Hamming radius of "precision within".
        leave_own_out: row i of both sides is the same item, which its own query does not search.
        per_query: also return the values of each query.
        on_progress: called with a Progress after each block of queries.

    Returns:
        Each score with its value in the worst and best order of ties, its chance level, and curves.

    Raises:
        CodesError: the codes differ in length, or one side is empty.
        DataError: the labels do not match the codes, or no query has a relevant item.
        ConfigError: an option is out of range.

    Example:
        >>> from rmsh.codes import Codes
        >>> query, database = Codes.from_values([[1, 1]]), Codes.from_values([[1, 1], [-1, -1]])
        >>> evaluate(query, database, [[1, 0]], [[1, 0], [0, 1]], k=1).ndcg
        Score(value=1.0, pessimistic=1.0, optimistic=1.0, chance=0.5)
    """
    first, *others = np.atleast_1d(k).tolist()
    options: dict[str, Any] = {"map_k": map_k, "map_normaliser": map_normaliser, "radius": radius}
    chosen = Definitions.parse({"k": first, "further_k": others, **options})
    n, items, started = len(query_codes), len(database_codes) - leave_own_out, time.monotonic()
    labels: dict[str, Any] = {"query_labels": query_labels, "database_labels": database_labels}
    ranks = ranking.rank_grid(max(items, 1))
    measured: list[dict[str, ScoreArray]] = []
    empty = done = 0
    by_rank = np.zeros((2, len(ranks)))
    for block in histograms(query_codes, database_codes, **labels, leave_own_out=leave_own_out):
        scores = _measure(block, chosen)
        measured.append(scores)
        by_rank += np.nansum(ranking.by_rank(block, ranks), axis=1)
        nothing = ranking.found_within(block, chosen.radius) == 0
        empty += int(np.count_nonzero(nothing & ~np.isnan(scores["within"][0])))
        done += len(block)
        on_progress(Progress("evaluate", done, n, "query", time.monotonic() - started))
    values = {name: np.concatenate([part[name] for part in measured], axis=1) for name in chosen.names()}
    dropped = int(np.isnan(values["ndcg"][0]).sum())
    kept = n - dropped
    if not kept:
        raise DataError(
            f"None of the {n} queries shares a label with any of the {items} database items; check that columns of "
            "labels are the same classes on both sides, and rows of labels match rows of codes."
        )
    means = {name: Score(*np.nanmean(rows, axis=1).tolist()) for name, rows in values.items()}
    suffixes = ("", "_pessimistic", "_optimistic", "_chance")
    columns = {name + end: row for name, rows in values.items() for end, row in zip(suffixes, rows, strict=True)}
    return Scores(
        definitions=chosen,
        bits=query_codes.bits,
        database=items,
        queries=n,
        dropped=dropped,
        **{kind: means[kind] for kind in _KINDS},
        empty_within=empty / kept,
        rank_curve=Curve(ranks, *(by_rank / kept)),
        per_query={"ids": query_codes.ids, **columns} if per_query else {},
        further={name: means[kind] for kind, name in chosen.names().items() if kind not in _KINDS},
    )


def _measure(block: HistogramArray, chosen: Definitions) -> dict[str, ScoreArray]:
    """The fields of Score, (4, Q), for each score."""
    random, at_k, ap = random_ranking(block), {"k": chosen.k}, {"k": chosen.map_k, "normaliser": chosen.map_normaliser}
    measures: dict[str, tuple[Callable[..., ScoreArray], Any]] = {
        "ndcg": (ranking.ndcg, at_k),
        "map": (ranking.average_precision, ap),
        "precision": (ranking.precision_at, at_k),
        **{f"ndcg@{k}": (ranking.ndcg, {"k": k}) for k in chosen.further_k},
    }
    scores = {
        name: np.stack([*(measure(block, order=order, **options) for order in ORDERS), measure(random, **options)])
        for name, (measure, options) in measures.items()
    }
    within, chance = (ranking.precision_within(some, chosen.radius) for some in (block, random))
    return scores | {"within": np.stack([within, within, within, chance])}


def score_vectors(
    query: FloatArray,
    database: FloatArray,
    query_labels: LabelArray,
    database_labels: LabelArray,
    *,
    k: int | Sequence[int] = 500,
    leave_own_out: bool = False,
) -> dict[str, ScoreArray]:
    """NDCG@k and AP of each query for a ranking by dot products, and both for a random ranking.

    A reference without codes: every item has its own distance, and the rare ties are broken by database order. Vectors
    are (Q, d) and (n, d), labels 0/1 (Q, classes) and (n, classes). NDCG is cut at rank k, AP is not; see
    :func:`evaluate` for several k and ``leave_own_out``. Returns ``ndcg``, ``ndcg_chance``, ``map`` and
    ``map_chance``, and ``ndcg@100`` and so on for further k, each (Q,); NaN for a query without a relevant item.
    """
    first, *others = np.atleast_1d(k).tolist()
    ranks = {"ndcg": first} | {f"ndcg@{other}": other for other in others}
    deepest = max(ranks.values())
    blocks: list[dict[str, ScoreArray]] = []
    for start in range(0, len(query), _BLOCK):
        rows = slice(start, start + _BLOCK)
        similarities, shared = query[rows] @ database.T, shared_labels(query_labels[rows], database_labels)
        if leave_own_out:  # ranked last, where it is cut off
            similarities[np.arange(len(shared)), np.arange(len(query))[rows]] = -np.inf
        ranked = _ranked(similarities, shared)
        ranked = ranked[:, :-1] if leave_own_out else ranked
        levels = np.arange(ranked.max(initial=0) + 1)
        near = ranked[:, :deepest, None] == levels
        rest = np.stack([(ranked[:, deepest:] == level).sum(axis=1) for level in levels], axis=1)
        counts = np.concatenate([near, rest[:, None]], axis=1, dtype=np.int64)  # NDCG ignores the order of the rest
        random = random_ranking(counts)
        scores = {"map": _average_precision(ranked > 0), "map_chance": ranking.average_precision(random)}
        for name, rank in ranks.items():
            scores |= {name: ranking.ndcg(counts, rank), f"{name}_chance": ranking.ndcg(random, rank)}
        blocks.append(scores)
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _ranked(similarities: FloatArray, shared: IntArray) -> NDArray[np.uint16]:
    """The labels shared with the item at each rank: the largest similarity first, and equal ones by column.

    The bits of a float are in the order of the values once those of a negative one are inverted.
    """
    from rmsh.metrics.kernel import sort_rows  # compiles or loads machine code

    bits = (0.0 - similarities).astype(np.float32, copy=False).view(np.int32)  # never -0.0
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(np.uint32) ^ np.uint32(1 << 31)
    return np.asarray(sort_rows(keys, shared.astype(np.uint16)))


def _average_precision(relevant: BitArray) -> ScoreArray:
    """AP of rankings without ties (Q, n), over the whole database: :func:`ranking.average_precision` for long rows."""
    hits = np.cumsum(relevant, axis=1)
    precisions = (hits / np.arange(1, relevant.shape[1] + 1)).sum(axis=1, where=relevant)
    return np.asarray(np.divide(precisions, hits[:, -1], out=np.full(len(hits), np.nan), where=hits[:, -1] > 0))
