"""A retrieval set from files of other programs: queries and database, each with labels, and what was guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rmsh.core.errors import ConfigError, DataError
from rmsh.data.readers.foreign_codes import FoundCodes, FoundLabels, Kind, Part, find_codes, find_labels
from rmsh.data.splits import Split, random_split
from rmsh.metrics.directions import modalities
from rmsh.metrics.relevance import LabelledCodes

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.core.types import Direction


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
    if query_labels is not None and query_codes is None:
        raise ConfigError(f"Labels of queries were given ({query_labels}) without their codes; give both.")
    asking_kinds, asked_kinds = _kinds(direction)
    asked = asking = _Files(find_codes(codes, bits=bits), find_labels(labels or codes))
    notes = asked.codes.notes + asked.labels.notes
    one_set = query_codes is None and all(part == "all" for part, _ in asked.codes.codes)
    if query_codes is not None:
        asking = _Files(find_codes(query_codes, bits=bits), find_labels(query_labels or query_codes))
        notes += asking.codes.notes + asking.labels.notes
    shared: tuple[Part, ...] = ("all",) if one_set or query_codes is not None else ()
    query, asking_kind = _side(asking, ("query", *shared), asking_kinds)
    database, asked_kind = _side(asked, ("database", *shared), asked_kinds)
    if "codes" not in (asking_kind, asked_kind):
        notes = (*notes, f"{asking_kind} codes ask {asked_kind} codes")
    if not one_set:
        refuse_drawing(queries)
        return RetrievalSet(query, database, notes)
    split, note = draw_queries(len(query), queries)
    return RetrievalSet(query.take(split.query), database.take(split.database), (*notes, note))


class _Files(NamedTuple):
    """What the files of one side hold."""

    codes: FoundCodes
    labels: FoundLabels


def _kinds(direction: Direction | None) -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
    """Which codes may ask and be asked, the preferred first; a direction leaves no choice."""
    if direction is None:
        return ("codes", "image", "text"), ("codes", "text", "image")
    asking, asked = modalities(direction)
    return (asking,), (asked,)


def _side(files: _Files, parts: tuple[Part, ...], kinds: tuple[Kind, ...]) -> tuple[LabelledCodes, Kind]:
    for part, kind in ((part, kind) for part in parts for kind in kinds):
        if (part, kind) in files.codes.codes:
            return LabelledCodes(files.codes.codes[part, kind], files.labels.of(*parts)), kind
    there = ", ".join(f"{part} {kind}" for part, kind in files.codes.codes)
    raise DataError(
        f"The codes found are {there}; codes of the {parts[0]} ({' or '.join(kinds)}) are needed. Give queries and "
        "database, or one set of codes, in the modalities of the direction."
    )


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
