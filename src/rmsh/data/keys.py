"""Keys: what the name of a matrix says about it.

Names are compared without case and punctuation. The community's files call pictures XAll (features) or IAll (pixels),
tags YAll and labels LAll; other files come in parts, such as I_tr and I_te.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

__all__ = ["ROLES", "Part", "Role", "meaning"]

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
