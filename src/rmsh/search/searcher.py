"""Search a library by text, image or item: encode the query, find the nearest codes, and order them by a finer score.

The items are in a library folder or in a collection on a Milvus server, which is searched by codes alone. Nothing here
needs torch.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from rmsh.codes import Codes, hamming, unpack
from rmsh.core.errors import CodesError, InputError
from rmsh.core.types import MODALITIES
from rmsh.features import extract
from rmsh.features.bag_of_words import words_of
from rmsh.index.base import check_k
from rmsh.index.filters import Label, Phrase, Text
from rmsh.library.items import Hit, Match
from rmsh.library.library import Library
from rmsh.search import scoring

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, Modality, ScoreArray
    from rmsh.features.base import Encoder
    from rmsh.features.images import ImageLike
    from rmsh.index.filters import Filter
    from rmsh.library.items import Candidates, Item
    from rmsh.library.queries import Generation
    from rmsh.model import Model

T = TypeVar("T")

_MOST_HITS = 1 << 20  # upper limit of k + skip
_CANDIDATES = 300  # by each kind of code, by words and by labels

Rank: TypeAlias = Literal["best", "codes"]


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


_SYNTAX = re.compile(r'(?:^|(?<=\s))-(?P<without>[^\s"-]\S*)|"(?P<phrase>[^"]*)"')


class Words(NamedTuple):
    """A text query taken apart: what is compared in meaning, exact phrases, and words that must not occur."""

    text: str = ""
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @classmethod
    def parse(cls, query: str) -> Words:
        """Take ``"a phrase"`` and ``-word`` out of a query.

        Example:
            >>> Words.parse('dog "on the beach" -cat t-shirt')
            Words(text='dog on the beach t-shirt', phrases=('on the beach',), without=('cat',))
        """
        marks = list(_SYNTAX.finditer(query))
        phrases = tuple(mark["phrase"] for mark in marks if mark["phrase"] and words_of(mark["phrase"]))
        without = tuple(mark["without"] for mark in marks if mark["without"] and words_of(mark["without"]))
        text = " ".join(_SYNTAX.sub(lambda mark: mark["phrase"] or "", query).split())
        return cls(text, phrases, without)

    def condition(self) -> Filter | None:
        """The filter that phrases and excluded words stand for."""
        parts: list[Filter] = [Phrase(phrase) for phrase in self.phrases]
        parts += [~(Text(word) | Label(word)) for word in self.without]
        return reduce(and_, parts) if parts else None


_NO_WORDS = Words()


@dataclass(frozen=True, eq=False)
class Query:
    """A code to search with, and what a finer score needs.

    Args:
        codes: the code of one query.
        model: fingerprint of the model that made it.
        origin: ID of the item whose code it is, which is excluded from the hits; None for other queries.
        modality: of the query; None if only the code is known, and hits are ranked by distance.
        values: relaxed code (bits,).
        vector: vector (dimensions,), as stored for items of this modality; None if the model has no joint space.
        words: the words of a text.
    """

    codes: Codes
    model: str
    origin: str | None = None
    modality: Modality | None = None
    values: FloatArray | None = None
    vector: FloatArray | None = None
    words: Words = _NO_WORDS

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
        """Encode a text; in a library, ``"a phrase"`` must occur in the text of a hit, and ``-word`` must not.

        Raises:
            InputError: the text is blank or only excludes words, or the model has no text encoder.
        """
        words = Words.parse(text) if isinstance(self.store, Library) else Words(text.strip())
        if not text.strip():
            raise InputError("The query text is blank; give at least one word.")
        if not words.text:
            raise InputError(f"The query {text!r} only excludes words; give at least one word to search for.")
        return replace(self._encode(words.text, "text"), words=words)

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
        values = model.project(features, modality)
        vector = model.vectors(features, modality)[0] if model.has_embedding else None
        return Query(Codes.from_values(values), model.fingerprint, modality=modality, values=values[0], vector=vector)

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
            if len(codes) and codes.vectors is None:
                return Query(codes, model, origin=name)
            if len(codes) and codes.vectors is not None:
                signs = np.where(unpack(codes.packed, codes.bits)[0], 1, -1).astype(np.float32)
                vector = codes.vectors[0].astype(np.float32)
                return Query(codes, model, origin=name, modality=modality, values=signs, vector=vector)
        if self.store.get(name) is None:
            raise InputError(f"There is no item with the ID {name!r}; give the ID of a stored item.")
        raise InputError(f"The item {name!r} has no {by or 'image or text'} code; search by its other modality.")

    def search(
        self,
        query: Query,
        k: int = 10,
        *,
        to: Modality = "image",
        where: Filter | None = None,
        skip: int = 0,
        rank: Rank = "best",
        candidates: int = _CANDIDATES,
    ) -> list[Hit]:
        """The k best items after the ``skip`` best ones, best first.

        Ranked by ``best``, the items with the nearest image codes, with the nearest text codes, with the words of the
        query and with labels that it names are ordered by a finer score (see scoring.py); the others follow by
        distance. ``codes`` ranks by distance alone, as does a query of which only the code is known.

        Args:
            query: from :meth:`text`, :meth:`image` or :meth:`item`.
            k: number of hits.
            to: modality of the items that are searched; distances refer to their codes.
            where: restricts the hits.
            skip: number of hits to skip, for paging.
            rank: "best" or "codes".
            candidates: number of items by each of the four ways.

        Raises:
            CodesError: the library was recoded since the query was encoded.
        """
        if not isinstance(skip, int) or skip < 0:
            raise InputError(f"skip is {skip!r}; give a whole number of at least 0.")
        wanted = check_k(k) + skip
        if wanted > _MOST_HITS:
            raise InputError(f"k + skip is {wanted:,}; at most {_MOST_HITS:,} hits can be searched.")
        if (condition := query.words.condition()) is not None:
            where = condition if where is None else where & condition
        ranked: list[Hit] = []
        if rank == "best" and query.modality is not None and isinstance(self.store, Library):
            found = self.store.candidates(
                query.codes,
                candidates,
                to=to,
                model=query.model,
                words=scoring.keywords(query.words.text),
                labels=scoring.label_names(query.words.text),
                where=where,
            )
            ranked = self._ranked(query, found, to)
        first = {hit.row for hit in ranked}
        if len(ranked) <= wanted:
            most = wanted + len(ranked) + (query.origin is not None)
            (nearest,) = self.store.search(query.codes, most, to=to, model=query.model, where=where)
            ranked += [hit for hit in nearest if hit.row not in first]
        return [hit for hit in ranked if hit.item.id != query.origin][skip:wanted]

    def _ranked(self, query: Query, found: Candidates, to: Modality) -> list[Hit]:
        """Candidates as hits, by falling score."""
        model, similar, standard = self.model, {}, {}
        for modality in MODALITIES:
            similar[modality], standard[modality] = _similarities(query, found, modality, model)
        words = scoring.keywords(query.words.text)
        matched = [scoring.words_found(words, item) for item in found.items]
        shares = np.array([len(some) / max(len(words), 1) for some in matched])
        own, other = MODALITIES if query.modality == "image" else MODALITIES[::-1]
        scores = scoring.combine(standard[own], standard[other], shares)
        distances = hamming(query.codes.packed, found.codes[to])[0]
        low = scoring.is_weak(scores, standard[own], standard[other])
        compared = query.modality == "text" and query.vector is not None and any(v.size for v in found.vectors.values())
        hits = []
        for place in np.lexsort((found.rows, distances, -scores)).tolist():
            image, caption = (_rounded(similar[modality][place]) for modality in MODALITIES)
            item = found.items[place]
            labels = tuple(sorted(scoring.labels_in_text(item.labels, query.words.text)))
            # Bits alone are not calibrated, and an item that has all the words is no weak one.
            weak = compared and bool(low[place]) and (not words or len(matched[place]) < len(words))
            match = Match(round(float(scores[place]), 4), image, caption, matched[place], labels, weak)
            hits.append(Hit(item, int(distances[place]), int(found.rows[place]), match))
        return hits

    def run(self, make: Callable[[], Query], use: Callable[[Query], T]) -> T:
        """Make a query and use it; retries once if the library was recoded in between."""
        query = make()
        try:
            return use(query)
        except CodesError:
            if self.store.generation().fingerprint == query.model:
                raise
            return use(make())


def _similarities(query: Query, found: Candidates, modality: Modality, model: Model) -> tuple[ScoreArray, ScoreArray]:
    """Similarities of a query to the images or texts of candidates, and the same standardised; NaN where none.

    Vectors are compared where both have one, otherwise the query with the bits of the code.
    """
    similar = np.full(len(found), np.nan)
    standard = similar.copy()
    if query.values is not None:
        similar[found.has[modality]] = scoring.agreement(query.values, found.codes[modality][found.has[modality]])
        standard = scoring.standardise(similar, scoring.BITS)
    vectors: FloatArray = found.vectors[modality].astype(np.float32)
    if query.vector is None or query.modality is None or not vectors.size:
        return similar, standard
    vector, scale = query.vector, scoring.TEXT_TO_IMAGE
    if modality == query.modality:
        scale = scoring.TEXT_TO_TEXT if modality == "text" else scoring.IMAGE_TO_IMAGE
    else:
        vector = model.joint(vector[None, :], query.modality)[0]
        present = vectors.any(axis=1)
        joint = model.joint(vectors[present], modality)
        vectors = np.zeros((len(found), joint.shape[1]), np.float32)
        vectors[present] = joint
    cosines = scoring.cosines(vector, vectors)
    known = ~np.isnan(cosines)
    return np.where(known, cosines, similar), np.where(known, scoring.standardise(cosines, scale), standard)


def _rounded(similarity: float) -> float | None:
    return None if np.isnan(similarity) else round(float(similarity), 4)
