"""Queries and a database with labels, read from a codes file of rmsh or from files of other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes_file import CodesFile, is_codes_file
from rmsh.core.errors import ConfigError, DataError
from rmsh.data.readers.code_files import CodeKind, FoundLabels, Meaning, find_codes, find_labels
from rmsh.data.splits import Split, random_split
from rmsh.metrics.directions import default_directions, modalities, select_direction
from rmsh.metrics.histogram import LabelledCodes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rmsh.codes import Codes
    from rmsh.core.types import Direction
    from rmsh.data.readers.matrix_files import Part


@dataclass(frozen=True, eq=False)
class RetrievalSet:
    """Queries and a database, and notes about how their files were read."""

    query: LabelledCodes
    database: LabelledCodes
    notes: tuple[str, ...]


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
    """Read codes and labels written by any program; ``codes`` may contain the labels too.

    The queries come from ``query_codes``, or from ``codes`` if it contains queries and a database; otherwise rows are
    drawn as queries (seed 0; by default a tenth, at most 1,000) and removed from the database. ``bits`` is the code
    length, if the arrays do not determine it. ``direction`` selects modalities, by default "i2t" if there are both.
    """
    if is_codes_file(codes):
        given = {"query_codes": query_codes, "query_labels": query_labels, "bits": bits}
        superfluous = [name for name, value in given.items() if value is not None]
        if superfluous:
            raise ConfigError(f"{codes} is a codes file, which already defines {', '.join(superfluous)}; omit it.")
        return _from_codes_file(codes, labels, queries, direction)
    if query_labels is not None and query_codes is None:
        raise ConfigError(f"Labels of queries ({query_labels}) were given without the codes of queries; give both.")
    coded, notes = find_codes(codes, bits=bits)
    found = find_labels(labels or codes)
    notes += found.notes
    one_set = query_codes is None and all(part == "all" for part, _ in coded)
    coded_queries, found_queries = coded, found
    if query_codes is not None:
        coded_queries, more = find_codes(query_codes, bits=bits)
        found_queries = find_labels(query_labels or query_codes)
        notes += more + found_queries.notes
    shared: tuple[Part, ...] = ("all",) if one_set or query_codes is not None else ()
    query_kinds: tuple[CodeKind, ...] = ("codes", "image", "text")  # in order of preference
    database_kinds: tuple[CodeKind, ...] = ("codes", "text", "image")
    if direction is not None:
        query_kinds, database_kinds = ((modality,) for modality in modalities(direction))
    query, query_kind = _labelled(coded_queries, found_queries, ("query", *shared), query_kinds)
    database, database_kind = _labelled(coded, found, ("database", *shared), database_kinds)
    if "codes" not in (query_kind, database_kind):
        notes = (*notes, f"{query_kind} codes search {database_kind} codes")
    if not one_set:
        _refuse_drawing(queries)
        return RetrievalSet(query, database, notes)
    split, note = draw_queries(len(query), queries)
    note += "; check that the model was not trained on them"
    return RetrievalSet(query.take(split.query), database.take(split.database), (*notes, note))


def _from_codes_file(path: Path, labels: Path | None, queries: int | None, direction: Direction | None) -> RetrievalSet:
    coded, notes = CodesFile.load(path), [f"{path} is a codes file"]
    if labels is not None:
        found = find_labels(labels)
        coded = coded.with_labels(found.of("all"), found.ids)
        notes += found.notes
    if coded.split is None:
        drawn, note = draw_queries(len(coded), queries)
        roles = np.full(len(coded), "database")
        roles[drawn.query] = "query"
        coded = replace(coded, split=roles)
        notes.append(note)
    else:
        _refuse_drawing(queries)
    notes += coded.leak()
    query, database = coded.part("query"), coded.part("database")
    chosen = direction or default_directions(query, database)[0]
    return RetrievalSet(*select_direction(query, database, chosen), notes=(*notes, f"the direction is {chosen}"))


def _labelled(
    coded: Mapping[Meaning, Codes], labels: FoundLabels, parts: tuple[Part, ...], kinds: tuple[CodeKind, ...]
) -> tuple[LabelledCodes, CodeKind]:
    for part, kind in product(parts, kinds):
        if (part, kind) in coded:
            return LabelledCodes(coded[part, kind], labels.of(*parts)), kind
    found = ", ".join(f"{part} {kind}" for part, kind in coded)
    needed = f"codes of the {parts[0]} ({' or '.join(kinds)}) are needed"
    raise DataError(f"The codes found are {found}; {needed}. Give queries and database, or one set of codes.")


def default_query_count(items: int) -> int:
    """The number of items drawn as queries by default: a tenth, at most 1,000, at least one."""
    return max(1, min(1000, items // 10))


def draw_queries(items: int, queries: int | None) -> tuple[Split, str]:
    """Draw rows as queries (seed 0), with all others as the database; also returns a note about it.

    Example:
        >>> draw_queries(20, None)[1]
        '2 of 20 items were drawn as queries (seed 0) and removed from the database'
    """
    split = random_split(items, default_query_count(items) if queries is None else queries)
    drawn = f"{len(split.query):,} of {items:,} items were drawn as queries (seed 0)"
    return split, f"{drawn} and removed from the database"


def _refuse_drawing(queries: int | None) -> None:
    if queries is not None:
        raise ConfigError(f"--queries is {queries}, but the files already contain the queries; omit --queries.")
