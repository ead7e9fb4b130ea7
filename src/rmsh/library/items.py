"""Items, hits, batches of items with their codes, and the checksum of stored values."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rmsh.codes import Codes, check_unique_ids
from rmsh.core.errors import CodesError, InputError
from rmsh.core.types import MODALITIES, BitArray, IntArray, Modality, PackedArray
from rmsh.data.records import locate

if TYPE_CHECKING:
    from rmsh.index.filters import Filter
    from rmsh.library.photos import ImageFile

# row, image code, text code, image vector, text vector
Blobs: TypeAlias = tuple[int, bytes | None, bytes | None, bytes | None, bytes | None]

_WINDOWS_DRIVE = re.compile("[a-zA-Z]:")


@dataclass(frozen=True)
class Item:
    """An image, a text, or both, with an ID; InputError if a value cannot be stored, or leads out of the image folder.

    Example:
        >>> Item("7", text="a dog", picture="photos/7.jpg", labels=("dog", "animal")).labels
        ('animal', 'dog')
    """

    id: str  # unique in a library
    text: str | None = None
    picture: str | None = None  # path of the image relative to the image folder, with "/" between folders
    labels: tuple[str, ...] = ()  # names; stored sorted and without duplicates

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _checked_name(self.id, "an ID"))
        if self.text is not None:
            object.__setattr__(self, "text", _checked_text(self.text, f"the text of the item {self.id!r}"))
        if self.picture is not None:
            object.__setattr__(self, "picture", _checked_image_path(self.picture, self.id))
        if isinstance(self.labels, str):
            raise InputError(f"The labels {self.labels!r} of the item {self.id!r} are a string; give a list of names.")
        names = {_checked_name(label, f"a label of the item {self.id!r}") for label in self.labels}
        object.__setattr__(self, "labels", tuple(sorted(names)))

    @classmethod
    def stored(cls, name: str, text: str | None, picture: str | None, labels: Sequence[str]) -> Self:
        """An item from values that were checked when they were stored, and that match their checksum."""
        item = cls.__new__(cls)
        item.__dict__.update(id=name, text=text, picture=picture, labels=tuple(labels))
        return item


def _checked_text(value: object, what: str) -> str:
    """A text as a string; ``what`` describes it in the message."""
    if type(value) is str and value.isascii():  # most are
        return value
    try:
        if isinstance(value, str):
            value.encode()
            return str(value)
    except UnicodeEncodeError:
        pass
    raise InputError(f"{value!r} cannot be {what}; give a string of valid Unicode.")


def _checked_name(value: object, what: str) -> str:
    """A name as a string; SQLite's JSON functions end a string at a NUL, so names cannot contain one."""
    name = _checked_text(value, what)
    if not name.strip() or "\0" in name:
        raise InputError(f"{name!r} cannot be {what}; give a string that is not blank and has no NUL character.")
    return name


def _checked_image_path(value: object, name: str) -> str:
    """A relative path that cannot leave its root folder on any operating system."""
    path = _checked_name(value, f"the image path of the item {name!r}")
    if path.startswith("/") or ".." in path.split("/") or "\\" in path or _WINDOWS_DRIVE.match(path):
        raise InputError(
            f"The image path {path!r} of the item {name!r} may lead outside the image folder; give a relative path "
            'with "/" between folders and without "..".'
        )
    return path


@dataclass(frozen=True)
class Match:
    """Why an item was found: a score, similarities of image and caption from -1 to 1, and what the query names.

    ``weak`` means that unrelated items reach this score, too.
    """

    score: float
    image: float | None
    caption: float | None
    words: tuple[str, ...] = ()  # of the query, found in text, labels or file name
    labels: tuple[str, ...] = ()  # of the item, named by the query
    weak: bool = False


@dataclass(frozen=True)
class Hit:
    """A search result: the item, its distance from the query in bits, and its row in the library.

    ``match`` is None if the items are ranked by distance.
    """

    item: Item
    distance: int
    row: int
    match: Match | None = None


@dataclass(frozen=True, eq=False)
class CandidateQuery:
    """Which items to compare more closely with a query.

    They are the ``count`` nearest by image codes and by text codes, as many with all the words, and as many with one of
    the labels.
    """

    codes: Codes  # the code of the query
    count: int
    to: Modality  # an item needs a code of this modality
    model: str  # fingerprint of the model that computed the code
    words: Sequence[Sequence[str]] = ()  # the forms of each word
    labels: Sequence[str] = ()
    where: Filter | None = None


class KeptWords:
    """A 64-bit filter per row over the words of items that were read before.

    It rules out most words that an item does not contain. Each word sets one bit. Every row has one place, which
    another row may take. The words of a row never change within one history.
    """

    def __init__(self, places: int) -> None:
        self._lock = threading.Lock()
        self._rows = np.zeros(places, dtype=np.int64)  # the row at each place, or 0, which is never a row
        self._bits = np.zeros(places, dtype=np.uint64)

    @staticmethod
    def bits_of(words: Iterable[str]) -> int:
        """The bits of some words; they are the same within one process only."""
        bits = 0
        for word in words:
            bits |= 1 << (hash(word) & 63)
        return bits

    def of(self, rows: IntArray) -> NDArray[np.uint64]:
        """The bits of some rows, uint64 (n,); all bits for rows that are not known."""
        places = rows % len(self._rows)
        with self._lock:
            return np.where(self._rows[places] == rows, self._bits[places], ~np.uint64(0))

    def keep(self, words: Mapping[int, Iterable[str]]) -> None:
        """Keep the bits of some words by row, unless they are known."""
        rows = np.array([*words], dtype=np.int64)
        new = rows[self._rows[rows % len(self._rows)] != rows]
        bits = np.array([self.bits_of(words[row]) for row in new.tolist()], dtype=np.uint64)
        with self._lock:
            self._rows[new % len(self._rows)], self._bits[new % len(self._rows)] = new, bits


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows for a closer comparison, in increasing order; a code or vector of zeros stands for none."""

    rows: IntArray
    codes: Mapping[Modality, PackedArray]  # (n, bytes)
    has: Mapping[Modality, BitArray]  # (n,), whether there is such a code
    vectors: Mapping[Modality, NDArray[np.int8]]  # (n, dimensions), or (n, 0) if there are none
    read: Callable[[Iterable[int]], Mapping[int, Item]]  # the items of some rows, without damaged ones
    total: int  # number of codes that were searched, at least approximately
    words: KeptWords | None = None  # what is known about the words of the items before they are read

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Batch:
    """Items with their codes, written to a library as a whole or not at all.

    Codes are matched to items by ID, and every item needs at least one. ``model`` is the fingerprint of their model.
    ``files`` has what is known about image files, by the ID of their item.
    """

    items: tuple[Item, ...]
    codes: Mapping[Modality, Codes]
    model: str
    files: Mapping[str, ImageFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known, coded = set(checked_ids(item.id for item in self.items)), set[str]()
        for modality, codes in self.codes.items():
            check_modality(modality)
            check_unique_ids(codes.ids)
            given = set(codes.ids.tolist())
            if not given <= known:
                raise InputError(f"Got a code for {min(given - known)!r}, which is not among the items; leave it out.")
            coded |= given
        if known - coded:
            raise CodesError(f"The item {min(known - coded)!r} has no code; give an image code, a text code, or both.")

    @property
    def ids(self) -> list[str]:
        """The IDs, in the order of the items."""
        return [item.id for item in self.items]

    def code_rows(self, rows: Iterable[int]) -> Iterator[Blobs]:
        """The given row, image code, text code, image vector and text vector of each item; None for what it lacks."""
        names, columns = self.ids, []
        for part, modality in product(("packed", "vectors"), MODALITIES):
            of_id: dict[str, bytes] = {}
            if (codes := self.codes.get(modality)) is not None and (values := getattr(codes, part)) is not None:
                of_id = dict(zip(codes.ids.tolist(), map(bytes, values), strict=True))
            columns.append([of_id.get(name) for name in names])
        return zip(rows, *columns, strict=True)


def checked_ids(ids: Iterable[str]) -> list[str]:
    """IDs as a list; InputError if one is invalid or occurs twice."""
    names = [_checked_name(name, "an ID") for name in ids]
    if len(set(names)) < len(names):
        (name, count), *_ = Counter(names).most_common(1)
        raise InputError(f"Got the ID {name!r} {count} times; give each item once.")
    return names


def check_modality(modality: str) -> None:
    """Raise InputError for an unknown modality."""
    if modality not in MODALITIES:
        raise InputError(f"There are no codes of {modality!r}; give one of {', '.join(MODALITIES)}.")


def image_path(folder: Path, item: Item, others: Mapping[str, Path] = MappingProxyType({})) -> Path | None:
    """The path of an item's image, or None; InputError if a link leads out of its image folder."""
    if item.picture is None:
        return None
    root, path = locate(item.picture, folder.resolve(), others)
    root, path = root.resolve(), Path(os.path.realpath(path))  # of a loop of links too, on which Path.resolve raises
    if not path.is_relative_to(root):
        raise InputError(f"The image of the item {item.id!r} is a link that leads out of {root}; move it inside.")
    return path


_encode = json.JSONEncoder().encode  # ASCII: independent of the Unicode version of the interpreter


def checksum_of(*values: Any) -> int:
    """The checksum of plain values; those of an item are row, ID, text, image path and sorted labels.

    Example:
        >>> checksum_of(1, "a", None, "x", []) == checksum_of(1, "a", "x", None, [])
        False
    """
    return crc32(_encode(values).encode())


def is_intact(values: Sequence[Any], checksum: int) -> bool:
    """Whether values match their checksum; a damaged database may return values of any type."""
    try:
        return checksum_of(*values) == checksum
    except TypeError:
        return False
