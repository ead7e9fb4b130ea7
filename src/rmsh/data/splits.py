"""Splits into database, query and training rows, and their files, which list the items by ID."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rmsh.core.errors import DataError, FormatError
from rmsh.core.files import checked_format, read_json, write_json
from rmsh.core.types import IdArray, IntArray

FORMAT, VERSION = "rmsh-split", 1
PARTS = ("database", "query", "train")
PROTOCOLS = ("paper", "unseen")  # the database is the training set; it was never trained on
_MOST_VALIDATION = 2000
_MOST_HELD_OUT = 8000


@dataclass(frozen=True, eq=False)
class Split:
    """Unique row numbers by part; rows in none of the parts are not used.

    Example:
        >>> split = Split("tiny", database=[0, 1, 2], query=[3], train=[0, 1])
        >>> split.query, split.sha256[:8]
        (array([3]), '2fdf79bc')
    """

    name: str  # in results
    database: IntArray  # (m,) rows to search
    query: IntArray  # (q,) query rows; none of them is in another part
    train: IntArray  # (t,) rows to train on

    def __post_init__(self) -> None:
        for part in PARTS:
            object.__setattr__(self, part, _checked_rows(getattr(self, part), f"split {self.name!r}: {part}"))
        for part in ("database", "train"):
            shared = np.intersect1d(self.query, getattr(self, part))
            if shared.size:
                found = f"{shared.size} rows are both in query and in {part}, the first is row {shared[0]}"
                raise DataError(f"split {self.name!r}: {found}; a query must not be in another part.")

    @property
    def sha256(self) -> str:
        """The SHA-256 of the rows of all parts in order, in hexadecimal."""
        digest = hashlib.sha256()
        for part in PARTS:
            rows = getattr(self, part)
            digest.update(f"{part} {len(rows)} ".encode())
            digest.update(rows.astype("<i8").tobytes())
        return digest.hexdigest()

    def check(self, n: int) -> Split:
        """Return this split, or raise a DataError if it does not fit ``n`` items."""
        for part in PARTS:
            rows = getattr(self, part)
            if rows.size and rows.max() >= n:
                found = f"{part} has row {rows.max()}, but there are {n} items"
                raise DataError(f"split {self.name!r}: {found}; use the split of this data.")
        return self

    def save(self, path: Path, ids: IdArray) -> str:
        """Write the IDs of each part and a hash of all IDs as JSON, and return the SHA-256 of the content."""
        self.check(len(ids))
        content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": self.name}
        content["items"] = fingerprint_ids(ids)
        content |= {part: [str(name) for name in np.asarray(ids)[getattr(self, part)]] for part in PARTS}
        content["sha256"] = _content_hash(content)
        write_json(path, content)
        return str(content["sha256"])

    @classmethod
    def load(cls, path: Path, ids: IdArray) -> Split:
        """Read a split for the items with these IDs, in any order."""
        if not path.is_file():
            raise DataError(f"{path} does not exist; give a file written by Split.save.")
        hint = "give a file written by Split.save"
        content = checked_format(read_json(path), path, name=FORMAT, version=VERSION, hint=hint)
        if content.get("sha256") != _content_hash(content):
            raise FormatError(f"{path} was changed after it was written; restore it or make a new split.")
        if content["items"] != fingerprint_ids(ids):
            found = f"{content['items']['count']} items, whose ids differ from the {len(ids)} given"
            raise DataError(f"{path} splits {found}; use the split of this data, or make a new one.")
        row_of = {str(name): row for row, name in enumerate(ids)}
        return cls(content["name"], *(np.array([row_of[name] for name in content[part]]) for part in PARTS))


def random_split(n: int, queries: int, *, seed: int = 0, name: str = "random") -> Split:
    """Draw queries at random; all other rows are both database and training rows."""
    if not 1 <= queries < n:
        raise DataError(f"Got {queries} queries for {n} items; give at least 1 and fewer than all.")
    query = _drawn(np.arange(n), queries, seed=seed)
    rest = np.setdiff1d(np.arange(n), query)
    return Split(name, rest, query, rest)


def hold_out_validation(split: Split, n: int | None = None) -> Split:
    """Use ``n`` training rows as queries, so that options are never chosen on the real queries.

    They are removed from the database and the training rows. The default ``n`` is a tenth of the training rows, at most
    2,000.
    """
    if n is None:
        n = min(_MOST_VALIDATION, max(1, len(split.train) // 10))
    if not 1 <= n < len(split.train):
        raise DataError(f"Got {n} validation queries for {len(split.train)} training rows; give 1 or more, but fewer.")
    query = _drawn(split.train, n, seed=0)
    database, train = (rows[~np.isin(rows, query)] for rows in (split.database, split.train))
    return Split(f"{split.name}-validation", database, query, train)


def unseen_split(split: Split, *, seed: int = 0, validation: bool = False) -> Split:
    """The protocol `unseen`: a part of the database is held out of training and is the only database.

    Neither the held-out rows nor those of :func:`hold_out_validation` are trained on. A fifth of the other database
    rows is held out, at most 8,000. With ``validation``, the validation rows are the queries and the database is empty:
    they are ranked among themselves, so that options are never chosen on held-out rows.
    """
    tuning = hold_out_validation(split)
    held_out = _drawn(tuning.database, min(_MOST_HELD_OUT, -(-len(tuning.database) // 5)), seed=seed)
    train = tuning.train[~np.isin(tuning.train, held_out)]
    if not len(train):
        raise DataError(f"{split.name} has {len(split.train)} training rows; the protocol unseen needs more.")
    if validation:
        return Split(f"{split.name}-unseen-validation", tuning.database[:0], tuning.query, train)
    return Split(f"{split.name}-unseen", held_out, split.query, train)


def _drawn(rows: IntArray, count: int, *, seed: int) -> IntArray:
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def _checked_rows(rows: Sequence[int] | IntArray, source: str) -> IntArray:
    array = np.asarray(rows) if len(rows) else np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"{source}: got {array.dtype} of shape {array.shape}; give a list of row numbers.")
    if array.size and array.min() < 0:
        raise DataError(f"{source}: got row {array.min()}; rows are counted from 0.")
    unique, counts = np.unique(array, return_counts=True)
    if unique.size != array.size:
        raise DataError(f"{source}: row {unique[counts > 1][0]} is listed more than once; list each row once.")
    return array.astype(np.int64)


def fingerprint_ids(ids: IdArray) -> dict[str, Any]:
    """The number of items and the SHA-256 of their IDs, in any order."""
    names = json.dumps(sorted(str(name) for name in ids), ensure_ascii=False)
    return {"count": len(ids), "sha256": hashlib.sha256(names.encode()).hexdigest()}


def _content_hash(content: Mapping[str, Any]) -> str:
    covered = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(covered, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
