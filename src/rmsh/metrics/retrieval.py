"""A retrieval set from files of other programs: queries and database, each with labels, and what was guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmsh.data.splits import Split, random_split
from rmsh.errors import ConfigError, DataError
from rmsh.metrics.directions import modalities
from rmsh.metrics.foreign import FoundCodes, FoundLabels, Kind, Part, find_codes, find_labels
from rmsh.metrics.labelled import LabelledCodes

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.codes import Codes
    from rmsh.types import Direction, Modality

__all__ = ["RetrievalSet", "draw_queries", "read_retrieval_set", "refuse_drawing", "usual_queries"]


@dataclass(frozen=True, eq=False)
class RetrievalSet:
    """Queries and a database, and notes on how their files were understood."""

    query: LabelledCodes
    database: LabelledCodes
    notes: tuple[str, ...]


def usual_queries(items: int) -> int:
    """How many items are drawn as queries unless asked otherwise: a tenth, at most 1,000, at least one.

    Example:
        >>> usual_queries(20), usual_queries(60_000)
        (2, 1000)
    """
    return max(1, min(1000, items // 10))


def read_retrieval_set(
    codes: Path,
    labels: Path | None = None,
    *,
    query_codes: Path | None = None,
    query_labels: Path | None = None,
    queries: int | None = None,
    bits: int | None = None,
    direction: Direction | None = None,
) -> RetrievalSet:
    """Read codes and labels, whoever wrote them.

    The queries come from ``query_codes``, or from ``codes`` where it has queries and a database; otherwise rows are
    drawn as queries (seed 0) and left out of the database.

    Args:
        codes: a file with the codes.
        labels: a file with the labels; where not given, ``codes`` holds them too.
        query_codes: a file with the codes of the queries; ``codes`` is then the database.
        query_labels: a file with their labels.
        queries: how many rows are drawn; a tenth, at most 1,000, where not given.
        bits: the length of a code, where the arrays do not say it.
        direction: which codes ask which, where there are image and text codes; "i2t" where not given.

    Raises:
        DataError: a file, a key or a shape does not fit.
        CodesError: the codes are malformed or ambiguous.
    """
    found, known = find_codes(codes, bits=bits), find_labels(labels or codes)
    asking, asked = modalities(direction or "i2t")
    others, of_others, notes = found, known, (*found.notes, *known.notes)
    if query_codes is not None:
        others, of_others = find_codes(query_codes, bits=bits), find_labels(query_labels or query_codes)
        notes = (*notes, *others.notes, *of_others.notes)
        query, database = (
            _side(others, of_others, asking, "query", "all"),
            _side(found, known, asked, "database", "all"),
        )
    elif query_labels is not None:
        raise ConfigError(f"Labels of queries were given ({query_labels}) without their codes; give both.")
    elif any(part != "all" for part, _ in found.codes):
        query, database = _side(found, known, asking, "query"), _side(found, known, asked, "database")
    else:
        return _drawn(_side(found, known, asking, "all"), _side(found, known, asked, "all"), queries, notes)
    refuse_drawing(queries)
    return RetrievalSet(query, database, notes)


def _drawn(asking: LabelledCodes, asked: LabelledCodes, queries: int | None, notes: tuple[str, ...]) -> RetrievalSet:
    if len(asking) != len(asked):
        raise DataError(
            f"There are {len(asking)} codes that ask and {len(asked)} that are asked; to draw queries, both must be of "
            "the same items, row by row."
        )
    split, note = draw_queries(len(asking), queries)
    return RetrievalSet(asking.take(split.query), asked.take(split.database), (*notes, note))


def draw_queries(items: int, queries: int | None) -> tuple[Split, str]:
    """Draw rows as queries (seed 0), all others being the database, and a note on it.

    Raises:
        DataError: fewer than one query is asked for, or nothing is left for the database.

    Example:
        >>> draw_queries(20, None)[1]
        '2 of 20 items were drawn as queries (seed 0) and left out of the database'
    """
    split = random_split(items, usual_queries(items) if queries is None else queries)
    return split, f"{len(split.query):,} of {items:,} items were drawn as queries (seed 0) and left out of the database"


def refuse_drawing(queries: int | None) -> None:
    """Refuse a number of queries to draw where the queries are given."""
    if queries is not None:
        raise ConfigError(
            f"{queries} queries were to be drawn, but they are given apart from the database; leave out --queries."
        )


def _side(found: FoundCodes, known: FoundLabels, modality: Modality, *parts: Part) -> LabelledCodes:
    return LabelledCodes(_codes(found, parts, modality), known.of(*parts))


def _codes(found: FoundCodes, parts: tuple[Part, ...], modality: Modality) -> Codes:
    kinds: tuple[Kind, ...] = ("codes", modality, "image", "text")
    for meant in ((part, kind) for part in parts for kind in kinds):
        if meant in found.codes:
            return found.codes[meant]
    there = ", ".join(sorted(f"{part} {kind}" for part, kind in found.codes))
    raise DataError(
        f"There are codes of {there}, and none of the {parts[0]}; give both queries and database, or one set of codes."
    )
