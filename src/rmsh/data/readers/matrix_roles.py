"""Choose the matrices of a data set among all that its files hold: by the key the user names, or by known names.

Keys: what the name of a matrix says about it.

Names are compared without case and punctuation. The community's files call pictures XAll (features) or IAll (pixels),
tags YAll and labels LAll; other files come in parts, such as I_tr and I_te.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from rmsh.core.errors import DataError
from rmsh.data.readers.matrices import SUFFIXES, Place, matrix_files, places_in

Role: TypeAlias = Literal["images", "texts", "labels", "ids", "class_names"]
Part: TypeAlias = Literal["all", "database", "train", "query"]
ROLES: tuple[Role, ...] = get_args(Role)

_WORDS: dict[Role, tuple[str, ...]] = {
    "images": ("images", "image", "imgs", "img", "imagefeatures"),
    "texts": ("texts", "text", "txt", "tags", "captions", "textfeatures"),
    "labels": ("labels", "label"),
    "ids": ("ids", "id"),
    "class_names": ("classnames", "names", "labelnames"),
}
# A letter alone says too little, but with an ending it is the community's way; L alone is always labels.
_LETTERS: dict[Role, str] = {"images": "i", "texts": "t", "labels": "l"}
_ENDINGS: dict[Part, tuple[str, ...]] = {
    "all": ("all",),
    "database": ("db", "database", "retrieval"),
    "train": ("tr", "train"),
    "query": ("te", "test", "query"),
}


def _known_names() -> dict[str, tuple[Role, Part]]:
    known: dict[str, tuple[Role, Part]] = {"xall": ("images", "all"), "yall": ("texts", "all"), "l": ("labels", "all")}
    for role, words in _WORDS.items():
        known |= dict.fromkeys(words, (role, "all"))
        stems = (*words, _LETTERS[role]) if role in _LETTERS else words
        known |= {stem + end: (role, part) for part, ends in _ENDINGS.items() for end in ends for stem in stems}
    return known


_KNOWN_NAMES = _known_names()


def meaning(key: str) -> tuple[Role, Part] | None:
    """The role and the part that a key's name stands for, or None where it is not known.

    Example:
        >>> meaning("LAll"), meaning("I_tr"), meaning("param")
        (('labels', 'all'), ('images', 'train'), None)
    """
    return _KNOWN_NAMES.get(re.sub(r"[^a-z0-9/]", "", key.lower()))


@dataclass(frozen=True)
class Chosen:
    """Which matrices to read.

    Args:
        places: role -> its matrix, or its parts in the order database, query.
        parts: what the parts are; ("all",) where matrices are whole.
        notes: what was guessed and what was left unread.
    """

    places: Mapping[Role, tuple[Place, ...]]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def choose(places: Sequence[Place], named: Mapping[str, str], *, skip: Collection[Role], source: str) -> Chosen:
    """Choose the matrices of each role but the skipped ones; what is not named is guessed.

    Raises:
        DataError: a named role or key does not exist, two keys fit one role, or none fits any.
    """
    for role in named:
        if role not in ROLES:
            raise DataError(f"A key was named for {role!r}; keys can be named for {', '.join(ROLES)}.")
    notes: list[str] = []
    found: dict[Role, dict[Part, Place]] = {}
    for role in ROLES:
        if role in named:
            found[role] = {"all": _find(places, named[role], source)}
        elif role not in skip:
            found[role] = _guess(places, role, notes)
    found = {role: parts for role, parts in found.items() if parts}
    if "labels" not in found:  # names of what is not there
        found.pop("class_names", None)
    if not {"images", "texts", "labels", "ids"} & found.keys():
        raise DataError(
            f"{source}: no key is known to be images, texts or labels; there are {_described(places)}. Say which is "
            "which as 'FILE:KEY'."
        )
    notes += _unused(places, found, named)
    return Chosen({role: tuple(parts.values()) for role, parts in found.items()}, _parts(found, source), tuple(notes))


def locate(text: str, role: Role) -> Place:
    """Find the matrix that "FILE" or "FILE:KEY" names; FILE alone must hold one matrix, or one of a fitting name.

    Raises:
        DataError: the key is missing, or it is not clear which is meant.
    """
    path, key = _file_and_key(text)
    places = [place for file in matrix_files(path) for place in places_in(file)]
    if key:
        return _find(places, key, str(path))
    if len(places) == 1:
        return places[0]
    guessed = _guess(places, role, [])
    if tuple(guessed) != ("all",):
        raise DataError(
            f"{path}: it is not clear which key is the {role}; there are {_described(places)}. Write '{text}:KEY'."
        )
    return guessed["all"]


def _file_and_key(text: str) -> tuple[Path, str]:
    """Cut "FILE:KEY" at its last colon, if a file is before it (a drive letter has a colon too)."""
    file, colon, key = text.rpartition(":")
    if colon and Path(file).suffix.lower() in SUFFIXES:
        return Path(file), key
    return Path(text), ""


def _find(places: Sequence[Place], key: str, source: str) -> Place:
    same = [place for place in places if place.key == key]
    same = same or [place for place in places if place.key.lower() == key.lower()]
    if len(same) > 1:
        raise DataError(f"{source}: several keys fit {key!r}: {_described(same)}; name the file as well.")
    if not same:
        raise DataError(f"{source}: there is no key {key!r}; there are {_described(places)}.")
    return same[0]


def _guess(places: Sequence[Place], role: Role, notes: list[str]) -> dict[Part, Place]:
    """The matrices whose names stand for a role: one, or one each for the database and the queries."""
    found: dict[Part, Place] = {}
    for place, part in _fitting(places, role):
        if len(place.shape) > 2:
            notes.append(f"{place} was skipped: it has {len(place.shape)} dimensions, as pixels have; features have 2")
            continue
        for other in found:
            if part == other or "all" in (part, other):
                raise DataError(f"Two keys fit the {role}: {found[other]} and {place}; name the one that is meant.")
        found[part] = place
    if "database" in found and "train" in found:
        notes.append(f"{found.pop('train')} was skipped: the database is trained on, and usually holds these rows")
    notes += [f"{role} were taken from {place}" for place in found.values()]
    return {part: found[part] for part in get_args(Part) if part in found}


def _fitting(places: Sequence[Place], role: Role) -> list[tuple[Place, Part]]:
    meanings = ((place, meaning(place.key)) for place in places)
    return [(place, meant[1]) for place, meant in meanings if meant is not None and meant[0] == role]


def _parts(found: Mapping[Role, Mapping[Part, Place]], source: str) -> tuple[Part, ...]:
    """The parts that all roles come in; class names are the same for every part."""
    parts = {role: tuple(places) for role, places in found.items() if role != "class_names"}
    if len(set(parts.values())) > 1:
        shown = ", ".join(f"{role} for {' and '.join(names)}" for role, names in parts.items())
        raise DataError(f"{source}: the matrices come in different parts ({shown}); give each in the same parts.")
    return next(iter(parts.values()))


def _unused(places: Sequence[Place], found: Mapping[Role, Mapping[Part, Place]], named: Collection[str]) -> list[str]:
    """Notes on matrices of no known name, and on those that a named key was preferred to."""
    used = {place for parts in found.values() for place in parts.values()}
    meanings = ((place, meaning(place.key)) for place in places if place not in used)
    return [f"{place} was not used" for place, meant in meanings if meant is None or meant[0] in named]


def _described(places: Sequence[Place]) -> str:
    return ", ".join(str(place) for place in places) or "no matrices"
