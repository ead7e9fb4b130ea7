"""Search a library by texts, images and items: encode the query, find the nearest codes, order them by a finer score.

The items are in a library folder or in a collection on a Milvus server. Nothing here needs torch.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from rmsh.codes import Codes, from_int8, hamming
from rmsh.core.errors import CodesError, InputError
from rmsh.core.types import MODALITIES
from rmsh.features import extract
from rmsh.features.base import encode_queries
from rmsh.index.base import check_k
from rmsh.library.items import CandidateQuery, Hit, Match
from rmsh.library.library import Library
from rmsh.search import scoring
from rmsh.search.query import Query, Words, compose, signs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import Features, FloatArray, IntArray, Modality, ScoreArray
    from rmsh.features.base import Encoder
    from rmsh.features.images import ImageLike
    from rmsh.index.filters import Filter
    from rmsh.library.items import Candidates, Item
    from rmsh.milvus.collection import Collection
    from rmsh.model import Model

T = TypeVar("T")

_MOST_HITS = 1 << 20  # upper limit of k + skip
_READ_AT_ONCE = 8  # items, after as many as are wanted
_CANDIDATES = 300  # by each kind of code, by words and by labels
_REMEMBERED = 1024  # texts; a query takes about 4 KB

Rank: TypeAlias = Literal["best", "codes"]
ItemStore: TypeAlias = "Library | Collection"


class Searcher(AbstractContextManager["Searcher"]):
    """Searches an open library or collection; the queries of the last ``remember`` texts are kept.

    Thread-safe; the library may be recoded meanwhile.

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

    def __init__(self, store: ItemStore, *, remember: int = _REMEMBERED) -> None:
        self.store = store
        self._encode_text = lru_cache(remember)(lambda model, text: self._encode(model, text, "text"))
        self._lock = threading.Lock()
        self._loaded: tuple[str, Model] | None = None
        self._encoders: dict[tuple[str, Modality], Encoder] = {}

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        model: Path | str | None = None,
        images: Path | None = None,
        remember: int = _REMEMBERED,
    ) -> Self:
        """Open a library folder, or a collection at ``http(s)://HOST:PORT/NAME`` with its model and image folder.

        InputError without the model of a collection, or with that of a library; FormatError as :meth:`Library.open`.
        """
        if not str(location).lower().startswith(("http://", "https://")):
            if surplus := model or images:
                raise InputError(f"Got {surplus}, but {location} has its own model and images; leave it out.")
            return cls(Library.open(location), remember=remember)
        if model is None:
            raise InputError(f"{location} is an address; also give the model that made its codes (--model FOLDER).")
        from rmsh.milvus.collection import Collection

        return cls(Collection.open(str(location), model, pictures=images), remember=remember)

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
                model, old = self.store.model(), self._loaded
                self._encoders = {  # one that both models use is not loaded again, which would take time and memory
                    (model.fingerprint, modality): encoder
                    for (of_model, modality), encoder in self._encoders.items()
                    if old and of_model == old[0] and old[1].encoders[modality] == model.encoders.get(modality)
                }
                self._loaded = model.fingerprint, model
                self._encode_text.cache_clear()  # its keys contain the old model
            return self._loaded[1]

    def takes(self, modality: Modality) -> bool:
        """Whether raw queries of a modality can be encoded."""
        model = self.model
        return modality in model.functions and modality in model.encoders

    def text(self, text: str) -> Query:
        """Encode a text, whose signs and quotes have the meaning that query.py describes; raises as :meth:`compose`."""
        if not text.strip():
            raise InputError("The query text is blank; give at least one word.")
        return self.compose(text=text)

    def compose(self, plus: Sequence[Query] = (), *, minus: Sequence[Query] = (), text: str = "") -> Query:
        """Add up queries and the words of a text, and subtract others, with the weight 0.7.

        Raises:
            InputError: there is nothing to search for, the model has no text encoder, or there are several parts and
                the model has no joint space.
            CodesError: the queries belong to different models.
        """
        words = Words.parse(text)
        plus = [*plus, *(self._encode_text(self.model, part) for part in words.plus)]
        minus = [*minus, *(self._encode_text(self.model, part) for part in words.minus)]
        if not plus:
            raise InputError(f"The query {text!r} only excludes or subtracts; give something to search for.")
        if len(plus) + len(minus) > 1 and not self.model.has_embedding:
            parts = f"The query has {len(plus) + len(minus)} parts"
            raise InputError(f"{parts}, but a model of {self.model.method} has no joint space; search by one of them.")
        query = compose(plus, minus)
        return replace(query, words=Words(*(a + b for a, b in zip(query.words, words, strict=True))))

    def image(self, image: ImageLike) -> Query:
        """Encode an image: a path, the content of an image file, or an open image.

        InputError if the file does not exist or the model has no image encoder; otherwise raises as ``read_image``.
        """
        if isinstance(image, (str, Path)) and not Path(image).is_file():
            raise InputError(f"The image file {image} does not exist; check the path.")
        return self._encode(self.model, str(image) if isinstance(image, Path) else image, "image")

    def _encode(self, model: Model, raw: ImageLike, modality: Modality) -> Query:
        return _query(model, encode_queries(self._encoder(model, modality), [raw]), modality)

    def _encoder(self, model: Model, modality: Modality) -> Encoder:
        if modality not in model.encoders or modality not in model.functions:
            found = f"The model was trained on precomputed {modality} features and has no encoder"
            raise InputError(f"{found}; search by the ID of an item instead of a raw {modality}.")
        key = model.fingerprint, modality
        with self._lock:
            if key not in self._encoders:
                self._encoders[key] = extract.restore(model.encoders[modality])
            return self._encoders[key]

    def item(self, name: str, *, by: Modality | None = None) -> Query:
        """The code of a stored item, of its image by default, otherwise of its text; InputError if there is none."""
        for modality in MODALITIES if by is None else (by,):
            codes = self.store.codes([name], modality)
            if len(codes):
                vector = None if codes.vectors is None else from_int8(codes.vectors)[0]
                joint = None if vector is None else _unit(self.model.joint(vector[None, :], modality)[0])
                return Query(codes, self.model.fingerprint, (name,), modality, signs(codes), vector, joint)
        if self.store.get(name) is None:
            raise InputError(f"There is no item with the ID {name!r}; give the ID of a stored item.")
        raise InputError(f"The item {name!r} has no {by or 'image or text'} code; search by its other modality.")

    def hints(self, where: Filter | None) -> list[str]:
        """Sentences about labels of a filter that no item has; none for a collection, whose labels are not listed."""
        return self.store.hints(where) if where is not None and isinstance(self.store, Library) else []

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
            query: from :meth:`text`, :meth:`image`, :meth:`item` or :meth:`compose`.
            to: modality of the items that are searched; distances refer to their codes.
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
        ranked, more = list[Hit](), False
        if rank == "best" and query.modality is not None:
            text = query.words.text
            words, labels = [scoring.forms(word) for word in scoring.keywords(text)], scoring.label_names(text)
            closer = CandidateQuery(query.codes, candidates, to, query.model, words, labels, where)
            enough = wanted + len(query.origins)
            ranked, more = self.store.candidates(closer, lambda found: self._ranked(query, found, to, enough))
        if not more:
            first = {hit.row for hit in ranked}
            most = wanted + len(ranked) + len(query.origins)
            (nearest,) = self.store.search(query.codes, most, to=to, model=query.model, where=where)
            ranked += [hit for hit in nearest if hit.row not in first]
        return [hit for hit in ranked if hit.item.id not in query.origins][skip:wanted]

    def _ranked(self, query: Query, found: Candidates, to: Modality, wanted: int) -> tuple[list[Hit], bool]:
        """The best candidates as hits, by falling score, and whether there are more than wanted."""
        similar, standard, loaded = {}, {}, self._loaded
        model = loaded[1] if loaded is not None and loaded[0] == query.model else self.model
        for modality in MODALITIES:
            similar[modality], standard[modality] = _similarities(query, found, modality, model)
        own, other = MODALITIES if query.modality == "image" else MODALITIES[::-1]
        bare = scoring.combine(standard[own], standard[other])
        weights = np.where(np.isnan(standard["text"]), scoring.LABELS, scoring.WORDS)
        distances = hamming(query.codes.packed, found.codes[to])[0]
        best = _best(query, found, bare, weights, distances, wanted + 1)
        scores = -np.array([scored.minus_score for scored in best])
        places = [scored.place for scored in best]
        low = scoring.is_weak(scores, standard[own][places], standard[other][places], items=found.total)
        compared = query.modality == "text" and query.vector is not None and any(v.size for v in found.vectors.values())
        words, hits = scoring.keywords(query.words.text), []
        columns = (values.tolist() for values in (scores, low, *(similar[modality][places] for modality in MODALITIES)))
        for (_, distance, place, item, matched), score, is_low, image, caption in zip(best, *columns, strict=True):
            labels = tuple(sorted(scoring.labels_in_text(item.labels, query.words.text)))
            # Bits alone are not calibrated, and an item that has all the words is never a weak match.
            weak = compared and is_low and (not words or len(matched) < len(words))
            match = Match(round(score, 4), _rounded(image), _rounded(caption), matched, labels, weak)
            hits.append(Hit(item, distance, int(found.rows[place]), match))
        return hits[:wanted], len(hits) > wanted

    def run(self, make: Callable[[], Query], use: Callable[[Query], T]) -> T:
        """Make a query and use it; retries once if the library was recoded in between."""
        loaded = self._loaded
        try:
            return use(make())
        except CodesError:
            if loaded is not None and self.store.generation().fingerprint == loaded[0]:
                raise
            return use(make())


def _query(model: Model, features: Features, modality: Modality) -> Query:
    """The query of the features of one text or image, (1, dim)."""
    vector = joint = None
    if model.has_embedding:
        values, embedded = model.project_and_embed(features, modality)
        vector, joint = model.vectors(features, modality, embedded)[0], _unit(embedded[0])
    else:
        values = model.project(features, modality)
    codes = Codes.from_values(values)
    return Query(codes, model.fingerprint, modality=modality, values=_unit(values[0]), vector=vector, joint=joint)


def _unit(vector: FloatArray) -> FloatArray:
    unit: FloatArray = vector / np.maximum(np.linalg.norm(vector), np.float32(1e-12))
    return unit


def _similarities(query: Query, found: Candidates, modality: Modality, model: Model) -> tuple[ScoreArray, ScoreArray]:
    """Similarities of a query to the images or texts of candidates, and the same standardised; NaN where none.

    Vectors are compared where both have one, otherwise the query with the bits of the code.
    """
    similar = np.full(len(found), np.nan)
    standard = similar.copy()
    vectors: NDArray[np.int8] | FloatArray = found.vectors[modality]
    own = modality == query.modality and query.vector is not None
    vector = query.vector if own else query.joint
    if vector is not None and vectors.size:
        scale = scoring.TEXT_TO_TEXT if modality == "text" else scoring.IMAGE_TO_IMAGE
        if not own:
            scale = scoring.TEXT_TO_IMAGE
            scale = scale._replace(mean=model.facts.get("unrelated", scale.mean))  # the mean depends on the training
            scale = scoring.summed(scale, query.weights, float(np.linalg.norm(vector)))
            if modality == "text":  # images are stored in the joint space
                vectors = _in_joint_space(found.vectors["text"], model)
        similar = scoring.cosines(vector, vectors)
        standard = scoring.standardise(similar, scale)
    bits = found.has[modality] & np.isnan(similar)
    if query.values is not None and bits.any():
        similar[bits] = scoring.agreement(query.values, found.codes[modality][bits])
        standard[bits] = scoring.standardise(similar[bits], scoring.BITS)
    return similar, standard


def _in_joint_space(stored: NDArray[np.int8], model: Model) -> FloatArray:
    """Vectors of texts in the joint space, zeros for zeros."""
    present = stored.any(axis=1)
    joint = model.joint(from_int8(stored[present]), "text")
    vectors = np.zeros((len(stored), joint.shape[1]), np.float32)
    vectors[present] = joint
    return vectors


class _Scored(NamedTuple):
    """A candidate with its whole score; sorting gives the order of hits."""

    minus_score: float
    distance: int
    place: int  # among the candidates, which are in the order of rows
    item: Item
    words: tuple[str, ...]  # found


def _best(
    query: Query, found: Candidates, bare: ScoreArray, weights: ScoreArray, distances: IntArray, wanted: int
) -> list[_Scored]:
    """The best candidates, from scores without words and weights of words, (n,).

    Items are read block by block, those that may have the highest scores first, until the others cannot be among the
    best, whatever words they have.
    """
    words, unwanted = (scoring.keywords(text) for text in (query.words.text, " ".join(query.words.minus)))
    most = bare + weights * _possible_share(words, found)
    order, best, start = np.lexsort((distances, -most)), list[_Scored](), 0  # a stable order
    while start < len(order):
        place = order[start]
        if len(best) >= wanted and (-most[place], distances[place], place) > best[wanted - 1][:3]:
            break
        places = order[start : start + (_READ_AT_ONCE if start else wanted)]
        start += len(places)
        items = found.read(found.rows[places].tolist())
        known = {row: scoring.words_of_item(item) for row, item in items.items()}
        if found.words is not None:
            found.words.keep(known)
        for place, row in zip(places.tolist(), found.rows[places].tolist(), strict=True):
            if row in items:  # and not damaged
                matched = scoring.words_found(words, known[row])
                share = len(matched) / max(len(words), 1)
                if unwanted:
                    share -= scoring.MINUS * len(scoring.words_found(unwanted, known[row])) / len(unwanted)
                score = float(bare[place] + weights[place] * share)
                best.append(_Scored(-score, int(distances[place]), place, items[row], matched))
        best.sort()
    return best[:wanted]


def _possible_share(words: Sequence[str], found: Candidates) -> ScoreArray:
    """The largest share of the words that each candidate may have, (n,)."""
    if found.words is None or not words:
        return np.full(len(found), float(bool(words)))
    bits, kept = found.words.of(found.rows), found.words
    shares: ScoreArray = np.mean([bits & np.uint64(kept.bits_of(scoring.forms(word))) != 0 for word in words], axis=0)
    return shares


def _rounded(similarity: float) -> float | None:
    return None if math.isnan(similarity) else round(similarity, 4)
