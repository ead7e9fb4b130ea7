"""Queries and a database with labels, read from a codes file of rmsh or from matrices of any other program.

Matrices of another program are ``codes`` and ``labels``, or ``query_codes``, ``database_codes``, ``query_labels`` and
``database_labels``; labels may be in a file of their own. Codes are 0/1, ±1 or real, one column per bit, or
whole bytes of packed bits; labels are 0/1, one column per class. Notes say how each matrix was read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from rmsh.codes import MAX_BITS, Codes
from rmsh.codes_file import CodesFile, is_codes_file
from rmsh.core.errors import CodesError, ConfigError, DataError
from rmsh.core.types import Direction
from rmsh.data.pairs import checked_labels
from rmsh.data.readers.matrix_files import MatrixKey, Part, list_matrices, matrix_files, read_matrix
from rmsh.data.splits import Split, random_split
from rmsh.metrics.directions import default_directions, select_direction
from rmsh.metrics.histogram import LabelledCodes

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, eq=False)
class RetrievalSet:
    """Queries and a database, and notes about how their files were read."""

    query: LabelledCodes
    database: LabelledCodes
    notes: tuple[str, ...]


def read_retrieval_set(
    codes: Path, labels: Path | None = None, *, queries: int | None = None, direction: Direction | None = None
) -> RetrievalSet:
    """Read codes and labels written by any program; ``codes`` may contain the labels too.

    If the files do not say which items are queries, some are drawn (seed 0; by default a tenth, at most 1,000) and
    removed from the database. ``direction`` selects the modalities of a codes file, by default "i2t" if it has both.
    """
    if is_codes_file(codes):
        if labels is not None:
            raise ConfigError(f"{codes} is a codes file, which has its labels; omit {labels}.")
        return _from_codes_file(codes, queries, direction)
    if direction is not None:
        raise ConfigError(f"--direction is {direction!r}, but only a codes file of rmsh has modalities; omit it.")
    found, of = _find(codes, "codes"), _find(labels or codes, "labels")
    if found.keys() != of.keys():
        parts = f"The codes are of {' and '.join(found)} items, the labels of {' and '.join(of)} items"
        raise DataError(f"{parts}; give both of the same.")
    sides, notes = {}, []
    for part, matrix in found.items():
        decoded, reading = decode_codes(read_matrix(matrix), source=matrix.where)
        sides[part] = LabelledCodes(decoded, checked_labels(read_matrix(of[part]), len(decoded), of[part].where))
        notes += [f"codes were taken from {matrix}: {reading}", f"labels were taken from {of[part]}"]
    if "all" not in sides:
        _refuse_drawing(queries)
        return RetrievalSet(sides["query"], sides["database"], tuple(notes))
    split, note = draw_queries(len(sides["all"]), queries)
    query, database = (sides["all"].take(rows) for rows in (split.query, split.database))
    return RetrievalSet(query, database, (*notes, f"{note}; check that the model was not trained on them"))


def _from_codes_file(path: Path, queries: int | None, direction: Direction | None) -> RetrievalSet:
    coded, notes = CodesFile.load(path), [f"{path} is a codes file"]
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


def _find(path: Path, wanted: Literal["codes", "labels"]) -> dict[Part, MatrixKey]:
    """The matrices of codes or labels in a file, for all items or for queries and database."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a single matrix file.")
    matrices = list_matrices(*matrix_files(path))
    found: dict[Part, MatrixKey] = {}
    for matrix in matrices:
        part, kind = matrix.meaning or ("all", None)
        if kind != wanted or part == "train":
            continue
        if part in found:
            raise DataError(f"Two keys match the {wanted}: {found[part]} and {matrix}; remove one.")
        found[part] = matrix
    if len(matrices) == 1:  # whatever its key
        found = {"all": matrices[0]}
    if {*found} not in ({"all"}, {"query", "database"}):
        names = f"{wanted!r}, or two matrices 'query_{wanted}' and 'database_{wanted}'"
        raise DataError(f"{path} has {', '.join(map(str, matrices)) or 'no keys'}; name the {wanted} {names}.")
    return found


def decode_codes(values: Any, *, source: str = "codes") -> tuple[Codes, str]:
    """Codes from 0/1, ±1 or real numbers (n, bits), whose signs are taken, or from packed bytes (n, bits / 8).

    Also returns how the values were read.
    """
    array = values.toarray() if sparse.issparse(values) else np.asarray(values)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub" or array.shape[1] > MAX_BITS:
        found = f"{array.dtype} of shape {array.shape}"
        raise CodesError(f"{source}: got {found}; codes are numbers (n, bits), with at most {MAX_BITS} bits.")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise CodesError(f"{source}: the values of row {row} are not finite; only finite numbers have a sign.")
    if ((array == 0) | (array == 1)).all():
        return Codes.from_values(array - 0.5), "0 and 1"
    if array.dtype == np.uint8 and 8 * array.shape[1] <= MAX_BITS:
        bits = 8 * array.shape[1]  # in either order: distances are the same
        return Codes(array, bits, np.arange(len(array)).astype(np.str_)), f"{bits} bits packed into bytes"
    if array.min() >= 0:
        found = f"numbers from {array.min():.3g} to {array.max():.3g}, none of them negative"
        raise CodesError(f"{source}: got {found}; subtract the threshold first (0.5 for probabilities).")
    signs = np.isin(array, (-1, 1)).all()
    return Codes.from_values(array), "-1 and +1" if signs else "signs of numbers; 0 counts as +1"


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
