"""Splits: which rows are searched, which ask, and which are learned from; and their file form, by id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import DataError, FormatError
from rmsh.core.files import checked_format, read_json, write_json

if TYPE_CHECKING:
    from rmsh.core.types import IdArray, IntArray

FORMAT, VERSION = "rmsh-split", 1
PARTS = ("database", "query", "train")
_MOST_VALIDATION = 2000


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of some items by their role; rows in none of the parts are left out.

    Args:
        name: what a result calls this split.
        database: int64 (m,) rows that are searched.
        query: int64 (q,) rows that ask; none of them is in ``database`` or ``train``.
        train: int64 (t,) rows that are learned from.

    Raises:
        DataError: a part is not a list of different row numbers, or a query is also in another part.

    Example:
        >>> split = Split("tiny", database=[0, 1, 2], query=[3], train=[0, 1])
        >>> split.query, split.sha256[:8]
        (array([3]), '2fdf79bc')
    """

    name: str
    database: IntArray
    query: IntArray
    train: IntArray

    def __post_init__(self) -> None:
        for part in PARTS:
            object.__setattr__(self, part, _checked_rows(getattr(self, part), f"split {self.name!r}: {part}"))
        for part in ("database", "train"):
            shared = np.intersect1d(self.query, getattr(self, part))
            if shared.size:
                raise DataError(
                    f"split {self.name!r}: {shared.size} rows are both in query and in {part}, the first is row "
                    f"{shared[0]}; a query must not be among what is searched or learned from."
                )

    @property
    def sha256(self) -> str:
        """The SHA-256 of the rows of all parts in their order, in hexadecimal."""
        digest = hashlib.sha256()
        for part in PARTS:
            rows = getattr(self, part)
            digest.update(f"{part} {len(rows)} ".encode())
            digest.update(rows.astype("<i8").tobytes())
        return digest.hexdigest()

    def check(self, n: int) -> Split:
        """Return this split, or refuse it for data of ``n`` items."""
        for part in PARTS:
            rows = getattr(self, part)
            if rows.size and rows.max() >= n:
                raise DataError(
                    f"split {self.name!r}: {part} has row {rows.max()}, but there are {n} items; use the split that "
                    "was made for this data."
                )
        return self

    def save(self, path: Path, ids: IdArray) -> str:
        """Write the split as JSON: the ids of each part, the ids of all items as a hash, and a hash of the content.

        Returns:
            The SHA-256 of the content, as the file states it.
        """
        self.check(len(ids))
        content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": self.name, "items": _items(ids)}
        content |= {part: [str(name) for name in np.asarray(ids)[getattr(self, part)]] for part in PARTS}
        content["sha256"] = _content_hash(content)
        write_json(path, content)
        return str(content["sha256"])

    @classmethod
    def load(cls, path: Path, ids: IdArray) -> Split:
        """Read a split for the items of these ids, in whatever order they are.

        Raises:
            FormatError: the file is damaged, was changed by hand, or is of a newer version.
            DataError: the split was made for other items.
        """
        if not path.is_file():
            raise DataError(f"{path} does not exist; give a split file that Split.save wrote.")
        content = _checked_content(read_json(path), path)
        if content["items"] != _items(ids):
            raise DataError(
                f"{path} splits {content['items']['count']} items with other ids than the {len(ids)} given; use the "
                "split that was made for this data, or make a new one."
            )
        row_of = {str(name): row for row, name in enumerate(ids)}
        return cls(content["name"], *([row_of[name] for name in content[part]] for part in PARTS))  # type: ignore[arg-type]


def random_split(n: int, queries: int, *, seed: int = 0, name: str = "random") -> Split:
    """Draw queries at random; all other rows are database and training.

    Example:
        >>> split = random_split(10, 2)
        >>> len(split.query), len(split.database), len(split.train)
        (2, 8, 8)
    """
    if not 1 <= queries < n:
        raise DataError(f"{queries} queries of {n} items were asked for; give at least 1 and fewer than the items.")
    query = _drawn(np.arange(n), queries, seed=seed)
    rest = np.setdiff1d(np.arange(n), query)
    return Split(name, rest, query, rest)


def hold_out_validation(split: Split, n: int | None = None, *, seed: int = 0) -> Split:
    """Ask with ``n`` training rows instead of the queries, so that nothing is ever chosen on the queries.

    The other database rows are searched, the other training rows are learned from, and the queries are left out.

    Args:
        split: to take them from.
        n: how many; None is 2,000, or a tenth of the training rows where that is less.
        seed: which ones.

    Example:
        >>> whole = Split("tiny", database=[0, 1, 2, 3], query=[4], train=[0, 1, 2, 3])
        >>> held = hold_out_validation(whole, 1)
        >>> held.name, len(held.query), 4 in held.query, len(held.database), len(held.train)
        ('tiny-validation', 1, False, 3, 3)
    """
    if n is None:
        n = min(_MOST_VALIDATION, max(1, len(split.train) // 10))
    if not 1 <= n < len(split.train):
        raise DataError(
            f"{n} validation queries of {len(split.train)} training rows were asked for; give at least 1 and fewer "
            "than are learned from."
        )
    query = _drawn(split.train, n, seed=seed)
    database, train = (rows[~np.isin(rows, query)] for rows in (split.database, split.train))
    return Split(f"{split.name}-validation", database, query, train)


def _drawn(rows: IntArray, count: int, *, seed: int) -> IntArray:
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def _checked_rows(rows: Sequence[int] | IntArray, source: str) -> IntArray:
    array = np.asarray(rows) if len(rows) else np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"{source}: {array.dtype} of shape {array.shape} was given; give a list of row numbers.")
    if array.size and array.min() < 0:
        raise DataError(f"{source}: row {array.min()} was given; rows are counted from 0.")
    unique, counts = np.unique(array, return_counts=True)
    if unique.size != array.size:
        raise DataError(f"{source}: row {unique[counts > 1][0]} is listed more than once; list each row once.")
    return array.astype(np.int64)


def _items(ids: IdArray) -> dict[str, Any]:
    """Which items a split is of, whatever their order."""
    names = json.dumps(sorted(str(name) for name in ids), ensure_ascii=False)
    return {"count": len(ids), "sha256": hashlib.sha256(names.encode()).hexdigest()}


def _content_hash(content: Mapping[str, Any]) -> str:
    covered = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(covered, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _checked_content(content: Any, path: Path) -> dict[str, Any]:
    checked = checked_format(content, path, name=FORMAT, version=VERSION, hint="give a file that Split.save wrote")
    if checked.get("sha256") != _content_hash(checked):
        raise FormatError(f"{path} was changed after it was written (its SHA-256 differs); restore it or make it anew.")
    return checked
