"""Where items and their codes are: the folder of a library, or a collection of a Milvus server, opened the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rmsh.core.errors import InputError
from rmsh.library.library import Library

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import Modality
    from rmsh.index.filters import Filter
    from rmsh.library.items import Hit, Item
    from rmsh.library.queries import Generation
    from rmsh.model import Model

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)


class Place(Protocol):
    """Where items and their codes are: what a library and a collection have in common."""

    def generation(self) -> Generation:
        """Whose codes it holds, and how long they are."""

    def model(self) -> Model:
        """The model that makes its codes."""

    def count(self) -> int:
        """How many items there are."""

    def get(self, name: str) -> Item | None:
        """The item of an id, or None."""

    def codes(self, ids: Iterable[str], modality: Modality) -> Codes:
        """The codes of some items' pictures or texts, in the order of the ids; items that have none are left out."""

    def picture_path(self, item: Item) -> Path | None:
        """Where the picture of an item is, or None where it has none here."""

    def credit(self) -> str:
        """Whom to thank for the pictures; "" where nobody is named."""

    def search(self, codes: Codes, k: int, *, to: Modality, model: str, where: Filter | None = None) -> list[list[Hit]]:
        """The k nearest items of each query."""

    def close(self) -> None:
        """Close it."""


def is_address(place: str | Path) -> bool:
    """Whether a place is the address of a server, and not a folder.

    Example:
        >>> is_address("http://127.0.0.1:19530/photos"), is_address("photos")
        (True, False)
    """
    return _ADDRESS.match(str(place)) is not None


def open_place(place: str | Path, *, model: Path | str | None = None, pictures: Path | None = None) -> Place:
    """Open a library, or a collection with the model that made its codes and the folder of its pictures.

    Raises:
        InputError: an address has no model, or a library, which knows its model and pictures, was given them.
        FormatError: the folder is no library, is damaged, or is of a newer rmsh.
    """
    if not is_address(place):
        given = model or pictures
        if given is not None:
            raise InputError(f"{given} was given; the library {place} has its own model and pictures: leave it out.")
        return Library.open(place)
    if model is None:
        raise InputError(f"{place} is an address and no model was given; give the folder of the model of its codes.")
    from rmsh.milvus.collection import Collection

    return Collection.open(str(place), model, pictures=pictures)
