"""Features that were made elsewhere: one row an item, found by its id, or in the order of the owner's list.

Assemble pairs from matrices: check that their rows are the same items, and turn each matrix into a column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data.pairs import Pairs, checked_column, checked_ids, checked_labels, listed
from rmsh.data.readers.matrices import Place, places_in, read_matrix
from rmsh.data.readers.matrix_roles import choose, locate, meaning
from rmsh.data.splits import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import IdArray, IntArray
    from rmsh.data.pairs import Column
    from rmsh.data.readers.matrix_roles import Role

BAG_DENSITY = 0.1  # a binary matrix with fewer ones than this is a bag of words and is kept sparse


def assemble_files(
    files: Sequence[Path], keys: Mapping[str, str], *, skip: Collection[Role] = (), source: str
) -> tuple[Pairs, Split | None, tuple[str, ...]]:
    """Read pairs from files of matrices, with their split where the matrices come in parts, and notes on the guesses.

    Raises:
        DataError: the message names the file, the key or the row, what was expected and what to do.
    """
    places = [place for file in files for place in places_in(file)]
    chosen = choose(places, keys, skip=skip, source=source)
    pairs, notes = assemble(chosen.places, source=source)
    split = None
    if len(chosen.parts) == 2:
        searched = next(_rows(role, parts[0]) for role, parts in chosen.places.items() if role != "class_names")
        database = np.arange(searched)
        split = Split(Path(source).stem, database, np.arange(searched, len(pairs)), database)
    return pairs, split, chosen.notes + notes


def assemble(places: Mapping[Role, Sequence[Place]], *, source: str) -> tuple[Pairs, tuple[str, ...]]:
    """Read pairs from one matrix a role, or from several whose rows follow each other; items without ids are numbered.

    Raises:
        DataError: the rows are not the same items, or a matrix holds what its role does not allow.
    """
    by_item = {role: parts for role, parts in places.items() if role != "class_names"}
    for part in zip(*by_item.values(), strict=True):
        _check_rows(dict(zip(by_item, part, strict=True)), source)
    columns: dict[str, Any] = {role: _stacked(role, parts) for role, parts in places.items()}
    n = sum(_rows(role, place) for role, parts in [*by_item.items()][:1] for place in parts)
    if n == 0:
        raise DataError(f"{source}: the matrices have no rows; give at least one item.")
    pairs = Pairs(**({"ids": np.arange(n)} | columns), source=source)
    return pairs, _wordless_note(pairs)


def _rows(role: Role, place: Place) -> int:
    """How many items a matrix has; a list of ids may be a row or a column."""
    if not place.shape:
        raise DataError(f"{place.where} is a single value; a matrix with one row an item is expected.")
    return math.prod(place.shape) if role == "ids" else place.shape[0]


def _check_rows(places: Mapping[Role, Place], source: str) -> None:
    counts = {role: _rows(role, place) for role, place in places.items()}
    if len(set(counts.values())) == 1:
        return
    shown = ", ".join(f"{counts[role]} of {role} ({place})" for role, place in places.items())
    widths = {place.shape[1:] for place in places.values()}
    rows = widths.pop() if len(widths) == 1 else counts.values()  # equal widths: all of them may be transposed
    raise DataError(
        f"{source}: the matrices have different numbers of rows: {shown}; give one row an item in each."
        + transposed_hint(places.values(), rows)
    )


def transposed_hint(places: Iterable[Place], rows: Collection[int]) -> str:
    """A sentence on those matrices that would have the right number of rows if they were transposed, or nothing.

    Example:
        >>> transposed_hint([Place(Path("a.npy"), "a", (8, 500))], [500])
        " Perhaps transposed (features x items): a.npy, key 'a'; transpose it."
    """
    turned = [place.where for place in places if len(place.shape) == 2 and place.shape[1] in rows]
    return f" Perhaps transposed (features x items): {' and '.join(turned)}; transpose it." if turned else ""


def _stacked(role: Role, parts: Sequence[Place]) -> Any:
    columns = [_column(role, read_matrix(place), place.where) for place in parts]
    if len(columns) == 1:
        return columns[0]
    if len({column.shape[1:] for column in columns}) > 1:
        shown = " and ".join(str(place) for place in parts)
        raise DataError(f"The parts of {role} have different widths: {shown}; give parts with the same features.")
    if any(sparse.issparse(column) for column in columns):
        return sparse.vstack(columns, format="csr")
    return np.concatenate(columns)


def _column(role: Role, matrix: Any, source: str) -> Any:
    if role == "class_names":
        return _strings(matrix, source)
    if role == "ids":
        return checked_ids(_strings(matrix, source), source)
    if role == "labels":
        return checked_labels(matrix, matrix.shape[0], source)
    if sparse.issparse(matrix):
        return checked_column(matrix, matrix.shape[0], source)
    if matrix.dtype.kind in "SU":
        return _strings(matrix, source)
    return checked_column(_bag_of_words(matrix) if role == "texts" else matrix, matrix.shape[0], source)


def _strings(values: Any, source: str) -> NDArray[np.str_]:
    """A list of strings or whole numbers, which MATLAB stores as a matrix of one row or column."""
    if sparse.issparse(values) or math.prod(values.shape) != max(values.shape, default=0):
        raise DataError(f"{source}: the shape is {values.shape}; a list of strings or whole numbers is expected.")
    flat = values.ravel()
    if flat.dtype.kind == "S":
        try:
            return np.asarray(np.strings.decode(flat, "utf-8"))
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: the strings are not in UTF-8 ({error}); write them in UTF-8.") from error
    if flat.dtype.kind == "f" and np.isfinite(flat).all() and (flat == np.floor(flat)).all():
        flat = flat.astype(np.int64)
    if flat.dtype.kind not in "Uiu":
        raise DataError(f"{source}: values of dtype {values.dtype} were found; strings or whole numbers are expected.")
    return np.asarray(flat, dtype=np.str_)


def _bag_of_words(matrix: NDArray[Any]) -> Any:
    """A binary matrix of few ones as CSR, any other as it is."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub" or np.count_nonzero(matrix) >= BAG_DENSITY * matrix.size:
        return matrix
    bag = sparse.csr_array(matrix)
    return bag if (bag.data == 1).all() else matrix


def _wordless_note(pairs: Pairs) -> tuple[str, ...]:
    if pairs.texts is None or not sparse.issparse(pairs.texts):
        return ()
    bag: Any = pairs.texts
    wordless = int(np.count_nonzero(np.diff(bag.indptr) == 0))
    return (f"{wordless:,} of {len(pairs):,} texts have no words",) if wordless else ()


def read_features(
    text: str, role: Role, ids: IdArray, *, wanted: IntArray, canonical_id: Callable[[str], str]
) -> tuple[Column, str]:
    """Read the features of some items from "FILE" or "FILE:KEY".

    Args:
        text: the file; where it has ids beside the matrix, rows are found by them, otherwise it must have one row for
            each of ``ids``, in their order.
        role: "images" or "texts".
        ids: (n,) of all items, in the owner's order.
        wanted: (m,) the rows of the items to read.
        canonical_id: turns the file's spelling of an id into ours.

    Returns:
        Features (m, d), and a sentence about where they are from.

    Raises:
        DataError: items are not in the file, or it is not clear which row is whose.
    """
    place = locate(text, role)
    beside = [other for other in places_in(place.path) if meaning(other.key) == ("ids", "all")]
    pairs, _ = assemble({role: (place,)}, source=place.where)
    column = cast("Column", pairs.images if role == "images" else pairs.texts)
    if beside:
        rows, how = rows_of(_read_ids(beside[0], canonical_id), ids[wanted], place.where), "by id"
    elif len(pairs) == len(ids):
        rows, how = wanted, "in the owner's order"
    else:
        raise DataError(
            f"{place.where} has {len(pairs):,} rows and no ids beside it, and there are {len(ids):,} items; add the "
            "key 'ids' with one id a row, or give one row an item in the owner's order."
        )
    return column[rows], f"{role} are features from {place}, rows {how}"


def _read_ids(place: Place, canonical_id: Callable[[str], str]) -> IdArray:
    pairs, _ = assemble({"ids": (place,)}, source=place.where)
    return np.array([canonical_id(name) for name in pairs.ids], dtype=np.str_)


def rows_of(available: IdArray, wanted: IdArray, source: str) -> IntArray:
    """The row of each wanted id, int64 (m,).

    Raises:
        DataError: an id is not there; the first ten are named.

    Example:
        >>> rows_of(np.array(["b", "a"]), np.array(["a", "a", "b"]), "features")
        array([1, 1, 0])
    """
    row = {str(name): number for number, name in enumerate(available)}
    absent = [str(name) for name in wanted if str(name) not in row]
    if absent:
        raise DataError(
            f"{source}: {len(absent):,} of {len(wanted):,} items have no row there, such as {listed(absent)}; give "
            "features of all of them."
        )
    return np.array([row[str(name)] for name in wanted], dtype=np.int64)
