"""Text or picture in, hits out: makes the code of a query with the model of a place, and finds what is near it there.

A place is the folder of a library, or a collection of a Milvus server. Nothing here needs torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from rmsh.core.errors import CodesError, InputError
from rmsh.core.types import MODALITIES
from rmsh.features import extract
from rmsh.index.base import check_k
from rmsh.search.open import open_place

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import Modality
    from rmsh.features.base import Encoder
    from rmsh.features.images import ImageLike
    from rmsh.index.filters import Filter
    from rmsh.library.items import Hit
    from rmsh.model import Model
    from rmsh.search.open import Place

T = TypeVar("T")

_MOST_FOUND = 1 << 20  # items that are made of what is found, whatever k and skip say


@dataclass(frozen=True, eq=False)
class Query:
    """A code to search with.

    Args:
        codes: of one query.
        model: the fingerprint of the model that made it.
        origin: the id of the item it is of, which is not among its own hits; None where it is of none.
    """

    codes: Codes
    model: str
    origin: str | None = None

    def __post_init__(self) -> None:
        if len(self.codes) != 1:
            raise CodesError(f"{len(self.codes)} codes were given as one query; give one.")


class Searcher:
    """Searches a place; several threads may use one, and a library may be recoded meanwhile.

    Args:
        place: an open library or collection.

    Example:
        >>> from rmsh.features.bag_of_words import BagOfWords
        >>> import numpy, tempfile
        >>> from rmsh.hash_function import HashFunction, Layer
        >>> from rmsh.library import Item, Library
        >>> from rmsh.model import Model
        >>> words = BagOfWords(["cat", "dog"])
        >>> layer = Layer(numpy.eye(2, dtype="f4"), numpy.full(2, -0.5, "f4"), "none")
        >>> model = Model({"text": HashFunction((layer,))}, "example", {}, encoders={"text": words.describe()})
        >>> codes = model.encode(words.encode(["a cat", "a dog"]), "text", ids=["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Library.create(folder, model) as library:
        ...         library.add([Item("a"), Item("b")], {"text": codes}, model=model.fingerprint)
        ...     with Searcher.open(folder) as searcher:
        ...         hits = searcher.search(searcher.text("my dog"), 2, to="text")
        >>> [(hit.item.id, hit.distance) for hit in hits]
        [('b', 0), ('a', 2)]
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._turn = threading.Lock()
        self._loaded: tuple[str, Model] | None = None
        self._encoders: dict[tuple[str, Modality], Encoder] = {}

    @classmethod
    def open(cls, place: str | Path, *, model: Path | str | None = None, pictures: Path | None = None) -> Self:
        """Open a library's folder, or an address ``http(s)://HOST:PORT/NAME`` with the folder of its model."""
        return cls(open_place(place, model=model, pictures=pictures))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the place."""
        self.place.close()

    @property
    def model(self) -> Model:
        """The model of the codes that are there at present, read once."""
        fingerprint = self.place.generation().fingerprint
        with self._turn:
            if self._loaded is None or self._loaded[0] != fingerprint:
                model = self.place.model()
                self._loaded = model.fingerprint, model
                self._encoders.clear()
            return self._loaded[1]

    def takes(self, modality: Modality) -> bool:
        """Whether raw queries of a modality can be coded: the model knows an encoder for them."""
        model = self.model
        return modality in model.functions and modality in model.encoders

    def text(self, text: str) -> Query:
        """The code of a text.

        Raises:
            InputError: the text is blank, or the model has no encoder for texts.
        """
        if not text.strip():
            raise InputError("A blank text was given to search with; give some words.")
        return self._coded(text, "text")

    def picture(self, picture: ImageLike) -> Query:
        """The code of a picture: a path, the bytes of a file, or an open picture.

        Raises:
            InputError: there is no such file, it holds no picture, or the model has no encoder for pictures.
        """
        if isinstance(picture, (str, Path)) and not Path(picture).is_file():
            raise InputError(f"{picture} is no file; give the path of a picture.")
        return self._coded(str(picture) if isinstance(picture, Path) else picture, "image")

    def _coded(self, raw: ImageLike, modality: Modality) -> Query:
        model = self.model
        features = self._encoder(model, modality).encode([raw])  # type: ignore[list-item]  # as pictures are given
        return Query(model.encode(features, modality), model.fingerprint)

    def _encoder(self, model: Model, modality: Modality) -> Encoder:
        if modality not in model.encoders or modality not in model.functions:
            raise InputError(
                f"A raw {modality} was given, but this model was trained on features of {modality}s that were made "
                "elsewhere; search from an item that is there, by its id."
            )
        key = model.fingerprint, modality
        with self._turn:
            if key not in self._encoders:
                self._encoders[key] = extract.restore(model.encoders[modality])
            return self._encoders[key]

    def item(self, name: str, *, by: Modality | None = None) -> Query:
        """The code of an item that is there, to search onward from it; by default of its picture, or else its text.

        Raises:
            InputError: there is no such item, or it has no such code.
        """
        model = self.place.generation().fingerprint
        for modality in MODALITIES if by is None else (by,):
            codes = self.place.codes([name], modality)
            if len(codes):
                return Query(codes, model, origin=name)
        if self.place.get(name) is None:
            raise InputError(f"There is no item of the id {name!r}; give the id of an item that is there.")
        raise InputError(f"The item {name!r} has no code of {by or 'any kind'}; search from its other side.")

    def search(
        self, query: Query, k: int = 10, *, to: Modality = "image", where: Filter | None = None, skip: int = 0
    ) -> list[Hit]:
        """The k nearest items after the ``skip`` nearest, nearest first.

        Args:
            query: from :meth:`text`, :meth:`picture` or :meth:`item`.
            k: how many to find.
            to: whether pictures or texts are searched, whatever the query is of.
            where: which items may be found.
            skip: how many to pass over, for the next page.

        Raises:
            CodesError: the place got codes of another model since the query was made.
        """
        if not isinstance(skip, int) or skip < 0:
            raise InputError(f"{skip!r} hits were to be skipped; give a whole number of at least 0.")
        wanted = check_k(k) + skip
        if wanted > _MOST_FOUND:
            raise InputError(f"{wanted:,} hits were asked for; a search gives up to {_MOST_FOUND:,}.")
        found = self.place.search(
            query.codes, wanted + (query.origin is not None), to=to, model=query.model, where=where
        )
        return [hit for hit in found[0] if hit.item.id != query.origin][skip:wanted]

    def asked(self, make: Callable[[], Query], use: Callable[[Query], T]) -> T:
        """Make a query and use it; once more where the place got codes of another model in between."""
        query = make()
        try:
            return use(query)
        except CodesError:
            if self.place.generation().fingerprint == query.model:
                raise
            return use(make())
