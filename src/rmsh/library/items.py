"""What a library holds and gives back: items, batches of items with their codes, and hits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import CodesError, InputError
from rmsh.core.types import MODALITIES

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import Modality

__all__ = ["Batch", "Hit", "Item", "check_modality", "checked_ids", "picture_inside"]

_DRIVE = re.compile("[a-zA-Z]:")  # of Windows


@dataclass(frozen=True)
class Item:
    """A picture, a text, or both, under one id.

    Args:
        id: names the item; unique in a library.
        text: any text, or None.
        picture: the path of a picture, relative to the folder of the pictures, with "/" between folders; or None.
        labels: names, in any order; they are kept sorted, each once.

    Raises:
        InputError: a value cannot be kept, or the picture lies outside the folder of the pictures.

    Example:
        >>> Item("7", text="a dog", picture="photos/7.jpg", labels=("dog", "animal")).labels
        ('animal', 'dog')
    """

    id: str
    text: str | None = None
    picture: str | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _name(self.id, "an id"))
        if self.text is not None:
            object.__setattr__(self, "text", _unicode(self.text, f"the text of the item {self.id!r}"))
        if self.picture is not None:
            object.__setattr__(self, "picture", _inside(self.picture, self.id))
        if isinstance(self.labels, str):
            raise InputError(
                f"The labels {self.labels!r} of the item {self.id!r} are one string; give a list of names."
            )
        names = {_name(label, f"a label of the item {self.id!r}") for label in self.labels}
        object.__setattr__(self, "labels", tuple(sorted(names)))


@dataclass(frozen=True)
class Hit:
    """An item that was found, and how far it is from the query in bits."""

    item: Item
    distance: int
    row: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Items with their codes, to be taken into a library all or none.

    Args:
        items: the items; their ids differ.
        codes: the codes of their pictures and of their texts, matched by id. An item without one is not found there.
        model: the fingerprint of the model that made the codes.

    Raises:
        InputError: two items have the same id, or codes are given for what is not an item.
        CodesError: an item has no code at all.
    """

    items: tuple[Item, ...]
    codes: Mapping[Modality, Codes]
    model: str

    def __post_init__(self) -> None:
        ids = checked_ids(item.id for item in self.items)
        known, coded = set(ids), set[str]()
        for modality, codes in self.codes.items():
            if modality not in MODALITIES:
                raise InputError(
                    f"Codes of {modality!r} were given; a library holds codes of {' and '.join(MODALITIES)}."
                )
            given = set(codes.ids.tolist())
            if not given <= known:
                raise InputError(
                    f"There is a code for {min(given - known)!r}, which is no item of these; leave it out."
                )
            coded |= given
        if known - coded:
            raise CodesError(
                f"The item {min(known - coded)!r} has no code; give one of its picture, its text, or both."
            )

    @property
    def ids(self) -> list[str]:
        """The ids, in the order of the items."""
        return [item.id for item in self.items]

    def blobs(self, modality: Modality) -> list[bytes | None]:
        """The packed code of each item, or None, in the order of the items."""
        codes = self.codes.get(modality)
        if codes is None:
            return [None] * len(self.items)
        of_id = dict(zip(codes.ids.tolist(), map(bytes, codes.packed), strict=True))
        return [of_id.get(item.id) for item in self.items]


def checked_ids(ids: Iterable[str]) -> list[str]:
    """Return ids as a list, or refuse one that occurs twice.

    Example:
        >>> checked_ids(["a", "b"])
        ['a', 'b']
    """
    names = [_name(name, "an id") for name in ids]
    if len(set(names)) < len(names):
        (twice, count), *_ = Counter(names).most_common(1)
        raise InputError(f"The id {twice!r} was given {count} times; give each item once.")
    return names


def check_modality(to: str) -> None:
    """Refuse to search codes of what has none."""
    if to not in MODALITIES:
        raise InputError(f"Codes of {to!r} were asked for; give one of {', '.join(MODALITIES)}.")


def picture_inside(folder: Path, item: Item) -> Path | None:
    """Where the picture of an item is, below the folder of the pictures, or None where it has none.

    Raises:
        InputError: a link leads out of that folder.
    """
    if item.picture is None:
        return None
    root = folder.resolve()
    path = (root / item.picture).resolve()
    if not path.is_relative_to(root):
        raise InputError(f"The picture of the item {item.id!r} leads out of {root}; keep pictures inside that folder.")
    return path


def _unicode(value: object, what: str) -> str:
    try:
        if isinstance(value, str):
            value.encode()
            return str(value)
    except UnicodeEncodeError:
        pass
    raise InputError(f"{value!r} was given as {what}; give a string of valid Unicode.")


def _name(value: object, what: str) -> str:
    """A string that names something: SQLite's JSON ends a string at a NUL, and an empty name finds nothing."""
    name = _unicode(value, what)
    if not name.strip() or "\0" in name:
        raise InputError(f"{name!r} was given as {what}; give a string that is not blank and has no NUL character.")
    return name


def _inside(value: object, name: str) -> str:
    """A relative path that stays below where it starts, on every system."""
    path = _name(value, f"the picture of the item {name!r}")
    if path.startswith("/") or ".." in path.split("/") or "\\" in path or _DRIVE.match(path):
        raise InputError(
            f"The picture {path!r} of the item {name!r} may lie outside the folder of the pictures; give a path "
            'relative to it, with "/" between folders and without "..".'
        )
    return path
