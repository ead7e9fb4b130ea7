"""Protocols: which pairs of a benchmark are searched, which ask and which are learned from, drawn with a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.splits import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, LabelArray

Drawer: TypeAlias = "Callable[[IntArray, int], IntArray]"  # candidate rows, how many -> some of them


@dataclass(frozen=True)
class Protocol:
    """How a benchmark is split.

    Args:
        name: what the split file is called.
        about: a sentence on whose protocol it is.
        queries: how many pairs ask; 0 is a tenth of all.
        database: how many of the others are searched; None is all of them.
        train: how many of the database are learned from; None is all of them.
        classes: how many of the most frequent classes count; None is all.
        labelled: whether pairs without a label are removed; queries always have one.
        worded: whether pairs without a word are removed.
        parts: the owner's part (such as "train") that the database is from, and the part the queries are from.
        in_order: take the first rows instead of drawing.
    """

    name: str
    about: str
    queries: int = 0
    database: int | None = None
    train: int | None = None
    classes: int | None = None
    labelled: bool = True
    worded: bool = True
    parts: tuple[str, str] | None = None
    in_order: bool = False


def draw_split(
    protocol: Protocol,
    labels: LabelArray,
    *,
    usable: BitArray,
    part: NDArray[np.str_] | None = None,
    seed: int = 0,
    stratified: bool = False,
) -> Split:
    """Draw the queries, then the database from the rest, then the training rows from the database.

    Args:
        protocol: how many of each.
        labels: 0/1 (n, classes).
        usable: (n,) which rows may be in the split at all.
        part: (n,) the owner's part of each row, where the protocol names parts.
        seed: the same seed draws the same rows.
        stratified: draw so that each part has each class about as often as all rows have it.

    Raises:
        DataError: there are not as many rows as the protocol needs.

    Example:
        >>> protocol = Protocol("tiny", "an example", queries=2, database=5, train=3)
        >>> split = draw_split(protocol, np.ones((9, 1), dtype=np.uint8), usable=np.arange(9) != 4)
        >>> len(split.query), len(split.database), len(split.train), 4 in split.database
        (2, 5, 3, False)
    """
    of_database, of_query = (np.flatnonzero(usable & mask) for mask in _part_masks(protocol, part, len(labels)))
    askers = of_query[labels[of_query].any(axis=1)]
    queries = protocol.queries or max(1, len(askers) // 10)
    _check_enough(protocol, queries, len(askers), len(of_database))
    pick = _drawer(protocol, labels, seed=seed, stratified=stratified)
    query = pick(askers, queries)
    rest = np.setdiff1d(of_database, query)
    database = rest if protocol.database is None else pick(rest, protocol.database)
    train = database if protocol.train is None else pick(database, protocol.train)
    return Split(protocol.name + ("-stratified" if stratified else ""), database, query, train)


def _check_enough(protocol: Protocol, queries: int, askers: int, searchable: int) -> None:
    others = max(protocol.database or 1, protocol.train or 1)
    spare = searchable - (0 if protocol.parts else queries)
    if askers < queries or spare < others:
        raise DataError(
            f"The split {protocol.name!r} needs {queries:,} queries and {others:,} other pairs, and finds {askers:,} "
            f"and {searchable:,} pairs to draw from; give the whole data set, or take the split 'tenth'."
        )


def _part_masks(protocol: Protocol, part: NDArray[np.str_] | None, n: int) -> tuple[BitArray, BitArray]:
    """Which rows may be in the database, and which may ask."""
    if protocol.parts is None:
        everything = np.ones(n, dtype=np.bool_)
        return everything, everything
    if part is None:
        raise DataError(
            f"The split {protocol.name!r} is made of the owner's parts ({', '.join(protocol.parts)}), which these "
            "files do not name; give the owner's files, or take another split."
        )
    return part == protocol.parts[0], part == protocol.parts[1]


def _drawer(protocol: Protocol, labels: LabelArray, *, seed: int, stratified: bool) -> Drawer:
    if protocol.in_order:
        return first_rows
    rng = np.random.default_rng(seed)
    if stratified:
        return partial(stratified_rows, stratum=rarest_label(labels), rng=rng)
    return partial(uniform_rows, rng=rng)


def first_rows(rows: IntArray, count: int) -> IntArray:
    """The first of some rows.

    Example:
        >>> first_rows(np.array([2, 5, 7]), 2)
        array([2, 5])
    """
    return rows[:count]


def uniform_rows(rows: IntArray, count: int, *, rng: np.random.Generator) -> IntArray:
    """Draw some of the rows, each as likely as any other; in increasing order."""
    return np.sort(rng.choice(rows, count, replace=False))


def stratified_rows(rows: IntArray, count: int, *, stratum: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw some of the rows, of each stratum its share; what is left by rounding goes to the largest remainders.

    Args:
        rows: (m,) candidate rows.
        count: how many to draw.
        stratum: (n,) the stratum of every row.
        rng: where chance is from.

    Example:
        >>> drawn = stratified_rows(np.arange(6), 3, stratum=np.array([0, 0, 0, 0, 1, 1]), rng=np.random.default_rng(0))
        >>> int((drawn < 4).sum()), int((drawn >= 4).sum())
        (2, 1)
    """
    strata, member, sizes = np.unique(stratum[rows], return_inverse=True, return_counts=True)
    shares = sizes * count / len(rows)
    quota = np.floor(shares).astype(np.int64)
    quota[np.argsort(quota - shares, kind="stable")[: count - quota.sum()]] += 1
    drawn = [rng.choice(rows[member == s], quota[s], replace=False) for s in range(len(strata))]
    return np.sort(np.concatenate(drawn))


def rarest_label(labels: LabelArray) -> IntArray:
    """The stratum of each row (n,): its least frequent label, so that rare classes keep their share; -1 without labels.

    Example:
        >>> rarest_label(np.array([[1, 1], [1, 0], [0, 0]], dtype=np.uint8))
        array([ 1,  0, -1])
    """
    frequency = labels.sum(axis=0, dtype=np.int64)
    rarest = np.where(labels, frequency, len(labels) + 1).argmin(axis=1)
    return np.where(labels.any(axis=1), rarest, -1)
