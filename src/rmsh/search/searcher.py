"""Search a library by text, image or item: encode the query with the library's model, and find the nearest codes.

The items are in a library folder or in a collection on a Milvus server. Nothing here needs torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from rmsh.core.errors import CodesError, InputError
from rmsh.core.types import MODALITIES
from rmsh.features import extract
from rmsh.index.base import check_k
from rmsh.library.library import Library

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import Modality
    from rmsh.features.base import Encoder
    from rmsh.features.images import ImageLike
    from rmsh.index.filters import Filter
    from rmsh.library.items import Hit, Item
    from rmsh.library.queries import Generation
    from rmsh.model import Model

T = TypeVar("T")

_MOST_HITS = 1 << 20  # upper limit of k + skip


class ItemStore(Protocol):
    """Items and their codes: what a library and a Milvus collection have in common."""

    def generation(self) -> Generation:
        """The model fingerprint and length of the current codes."""

    def model(self) -> Model:
        """The model of the current codes."""

    def count(self) -> int:
        """Number of items."""

    def get(self, name: str) -> Item | None:
        """The item with this ID, or None."""

    def codes(self, ids: Iterable[str], modality: Modality) -> Codes:
        """Codes of some items in the order of the IDs; items without a code of this modality are left out."""

    def picture_path(self, item: Item) -> Path | None:
        """Path of an item's image file, or None if it is not available here."""

    def credit(self) -> str:
        """Attribution of the images, or an empty string."""

    def search(self, codes: Codes, k: int, *, to: Modality, model: str, where: Filter | None = None) -> list[list[Hit]]:
        """The k nearest items of each query."""

    def close(self) -> None:
        """Release files and connections."""


@dataclass(frozen=True, eq=False)
class Query:
    """A code to search with.

    Args:
        codes: the code of one query.
        model: fingerprint of the model that made it.
        origin: ID of the item whose code it is, which is excluded from the hits; None for other queries.
    """

    codes: Codes
    model: str
    origin: str | None = None

    def __post_init__(self) -> None:
        if len(self.codes) != 1:
            raise CodesError(f"A query has one code; got {len(self.codes)}.")


class Searcher:
    """Searches a library or a collection. Thread-safe; the library may be recoded meanwhile.

    Args:
        store: an open library or collection.

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

    def __init__(self, store: ItemStore) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._loaded: tuple[str, Model] | None = None
        self._encoders: dict[tuple[str, Modality], Encoder] = {}

    @classmethod
    def open(cls, location: str | Path, *, model: Path | str | None = None, images: Path | None = None) -> Self:
        """Open a library folder, or a collection at ``http(s)://HOST:PORT/NAME`` with its model and image folder.

        Raises:
            InputError: a collection needs a model; a library has its own model and images.
            FormatError: the folder is not a library, is damaged, or was written by a newer rmsh.
        """
        if not str(location).lower().startswith(("http://", "https://")):
            if surplus := model or images:
                raise InputError(
                    f"Got {surplus}, but the library {location} has its own model and images; leave it out."
                )
            return cls(Library.open(location))
        if model is None:
            raise InputError(
                f"{location} is an address; also give the folder of the model that made its codes (--model)."
            )
        from rmsh.milvus.collection import Collection

        return cls(Collection.open(str(location), model, pictures=images))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the library or collection."""
        self.store.close()

    @property
    def model(self) -> Model:
        """The model of the current codes, loaded once."""
        fingerprint = self.store.generation().fingerprint
        with self._lock:
            if self._loaded is None or self._loaded[0] != fingerprint:
                model = self.store.model()
                self._loaded = model.fingerprint, model
                self._encoders.clear()
            return self._loaded[1]

    def takes(self, modality: Modality) -> bool:
        """Whether raw queries of a modality can be encoded."""
        model = self.model
        return modality in model.functions and modality in model.encoders

    def text(self, text: str) -> Query:
        """Encode a text.

        Raises:
            InputError: the text is blank, or the model has no text encoder.
        """
        if not text.strip():
            raise InputError("The query text is blank; give at least one word.")
        return self._encode(text, "text")

    def image(self, image: ImageLike) -> Query:
        """Encode an image: a path, the content of an image file, or an open image.

        Raises:
            InputError: the file does not exist or is not an image, or the model has no image encoder.
        """
        if isinstance(image, (str, Path)) and not Path(image).is_file():
            raise InputError(f"The image file {image} does not exist; check the path.")
        return self._encode(str(image) if isinstance(image, Path) else image, "image")

    def _encode(self, raw: ImageLike, modality: Modality) -> Query:
        model = self.model
        features = self._encoder(model, modality).encode([raw])  # type: ignore[list-item]  # any form of an image
        return Query(model.encode(features, modality), model.fingerprint)

    def _encoder(self, model: Model, modality: Modality) -> Encoder:
        if modality not in model.encoders or modality not in model.functions:
            raise InputError(
                f"The query is a raw {modality}, but the model was trained on precomputed {modality} features and has "
                "no encoder; search by the ID of an item instead."
            )
        key = model.fingerprint, modality
        with self._lock:
            if key not in self._encoders:
                self._encoders[key] = extract.restore(model.encoders[modality])
            return self._encoders[key]

    def item(self, name: str, *, by: Modality | None = None) -> Query:
        """The code of a stored item: of its image by default, otherwise of its text.

        Raises:
            InputError: there is no such item, or it has no such code.
        """
        model = self.store.generation().fingerprint
        for modality in MODALITIES if by is None else (by,):
            codes = self.store.codes([name], modality)
            if len(codes):
                return Query(codes, model, origin=name)
        if self.store.get(name) is None:
            raise InputError(f"There is no item with the ID {name!r}; give the ID of a stored item.")
        raise InputError(f"The item {name!r} has no {by or 'image or text'} code; search by its other modality.")

    def search(
        self, query: Query, k: int = 10, *, to: Modality = "image", where: Filter | None = None, skip: int = 0
    ) -> list[Hit]:
        """The k nearest items after the ``skip`` nearest ones, nearest first.

        Args:
            query: from :meth:`text`, :meth:`image` or :meth:`item`.
            k: number of hits.
            to: modality of the codes that are searched.
            where: restricts the hits.
            skip: number of hits to skip, for paging.

        Raises:
            CodesError: the library was recoded since the query was encoded.
        """
        if not isinstance(skip, int) or skip < 0:
            raise InputError(f"skip is {skip!r}; give a whole number of at least 0.")
        wanted = check_k(k) + skip
        if wanted > _MOST_HITS:
            raise InputError(f"k + skip is {wanted:,}; at most {_MOST_HITS:,} hits can be searched.")
        found = self.store.search(
            query.codes, wanted + (query.origin is not None), to=to, model=query.model, where=where
        )
        return [hit for hit in found[0] if hit.item.id != query.origin][skip:wanted]

    def run(self, make: Callable[[], Query], use: Callable[[Query], T]) -> T:
        """Make a query and use it; retries once if the library was recoded in between."""
        query = make()
        try:
            return use(query)
        except CodesError:
            if self.store.generation().fingerprint == query.model:
                raise
            return use(make())
