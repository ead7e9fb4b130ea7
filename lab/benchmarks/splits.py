"""Draw the split of a protocol: queries, database and training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.splits import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lab.benchmarks.declarations import Protocol
    from rmsh.core.types import BitArray, IntArray, LabelArray


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

    Only ``usable`` rows (n,) are drawn. ``part`` (n,) is the published part of each row, if the protocol names parts.
    A ``stratified`` split keeps the share of each class.
    """
    of_database = of_query = np.flatnonzero(usable)
    if protocol.parts is not None:
        if part is None:
            parts = ", ".join(protocol.parts)
            raise DataError(
                f"The split {protocol.name!r} needs the published parts ({parts}); give the published files, or use "
                "another split."
            )
        of_database, of_query = (np.flatnonzero(usable & (part == name)) for name in protocol.parts)
    candidates = of_query[labels[of_query].any(axis=1)]
    queries = protocol.queries or max(1, len(candidates) // 10)
    needed = max(protocol.database or 1, protocol.train or 1)
    if len(candidates) < queries or len(of_database) - (0 if protocol.parts else queries) < needed:
        found = f"there are {len(candidates):,} and {len(of_database):,} pairs to draw from"
        raise DataError(
            f"The split {protocol.name!r} needs {queries:,} queries and {needed:,} other pairs, but {found}; give the "
            "whole data set, or use the split 'tenth'."
        )
    rng = np.random.default_rng(seed)

    def pick(rows: IntArray, count: int) -> IntArray:
        if protocol.in_order:
            return rows[:count]
        if stratified:
            return stratified_rows(rows, count, labels=labels, rng=rng)
        return np.sort(rng.choice(rows, count, replace=False))

    query = pick(candidates, queries)
    rest = np.setdiff1d(of_database, query)
    database = rest if protocol.database is None else pick(rest, protocol.database)
    train = database if protocol.train is None else pick(database, protocol.train)
    return Split(protocol.name + ("-stratified" if stratified else ""), database, query, train)


def stratified_rows(rows: IntArray, count: int, *, labels: LabelArray, rng: np.random.Generator) -> IntArray:
    """Draw rows in proportion to each stratum; the largest remainders are rounded up.

    The stratum of a row is its least frequent label, so that rare classes keep their share; -1 without labels.
    """
    frequency = labels.sum(axis=0, dtype=np.int64)
    rarest = np.where(labels, frequency, len(labels) + 1).argmin(axis=1)
    stratum = np.where(labels.any(axis=1), rarest, -1)
    strata, member, sizes = np.unique(stratum[rows], return_inverse=True, return_counts=True)
    shares = sizes * count / len(rows)
    quota = np.floor(shares).astype(np.int64)
    quota[np.argsort(quota - shares, kind="stable")[: count - quota.sum()]] += 1
    drawn = [rng.choice(rows[member == s], quota[s], replace=False) for s in range(len(strata))]
    return np.sort(np.concatenate(drawn))
