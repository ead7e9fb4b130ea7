"""The search service behind the HTTP routes: queries, pages of hits, items and thumbnails."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from rmsh.codes import Codes
from rmsh.core.errors import DataError, ImageLimitError, InputError, RmshError
from rmsh.core.types import MODALITIES
from rmsh.features.images import check_size
from rmsh.index.filters import parse
from rmsh.search.scoring import labels_in_text
from rmsh.search.searcher import Query, Searcher
from rmsh.serve.limits import MOST_PIXELS, MOST_TEXT, MOST_UPLOAD, ProblemError, Turns
from rmsh.serve.metrics import Metrics
from rmsh.serve.schemas import About, Found, FoundItem, ItemCodes, Label, Matched, Options, Parameters, Queried
from rmsh.serve.thumbnails import Thumbnails, etag

if TYPE_CHECKING:
    from typing import Literal

    from rmsh.core.types import Modality
    from rmsh.library.items import Hit, Item

    Kind = Literal["text", "picture", "item", "code"]
    Marks = Callable[[Collection[str]], Collection[str]]  # labels of an item -> those that match the query


_WAITING = 64
# Requests run in 40 threads. Uploads occupy at most this many, however long decoding takes, so searches go on.
_MOST_UPLOADS = 8
_WAITING_UPLOADS = 8
_REMEMBERED = 256  # uploads


class SearchService:
    """Serves the requests of one server.

    Args:
        searcher: searches the library or collection.
        name: its name on the page.
    """

    def __init__(self, searcher: Searcher, *, name: str) -> None:
        self._searcher = searcher
        self._name = name
        running = os.cpu_count() or 1
        # Uploads and thumbnails have their own slots, so that they never delay a search.
        self._turns = Turns(running, _WAITING)
        self._upload_turns = Turns(min(running, _MOST_UPLOADS), _WAITING_UPLOADS)
        self._thumbnail_turns = Turns(running, _WAITING)
        self._thumbnails = Thumbnails()
        self._uploaded: OrderedDict[tuple[str, str], Query] = OrderedDict()  # by model and code, for further pages
        self.metrics = Metrics(searcher.store.count)

    def about(self) -> About:
        """Describe what is served."""
        model = self._searcher.model
        return About(
            name=self._name,
            items=self._searcher.store.count(),
            bits=model.bits,
            model=model.fingerprint,
            method=model.method,
            takes=[modality for modality in MODALITIES if self._searcher.takes(modality)],
            credit=self._searcher.store.credit(),
            most_upload=MOST_UPLOAD,
            most_text=MOST_TEXT,
        )

    def check(self) -> None:
        """Raise if the library or collection does not respond."""
        self._searcher.store.generation()

    def search(self, request: Parameters) -> Found:
        """Search by words, by an item or with a code."""
        if request.text is not None:
            text = request.text

            def make() -> Query:
                with self.metrics.stage("encode text"):
                    return self._searcher.text(text)

            return self._found("text", make, request, marks=lambda labels: labels_in_text(labels, text))
        if request.item is not None:
            name, by = request.item, request.by
            known = set(self._item(name).labels)
            return self._found("item", lambda: self._searcher.item(name, by=by), request, marks=known.intersection)
        code, model = request.code or "", request.model or ""
        query = self._uploaded.get((model, code))
        if query is None:
            packed = np.frombuffer(bytes.fromhex(code), dtype=np.uint8)[None, :]
            query = Query(Codes(packed, self._searcher.model.bits, np.array(["query"])), model)
        return self._found("code", lambda: query, request)

    def search_image(self, content: bytes, request: Options) -> Found:
        """Search by an uploaded image.

        Raises:
            ProblemError: 413, the image is too large, or takes too much time or memory to decode.
            DataError: it cannot be read as an image.
        """

        def make() -> Query:
            with self._turn(self._upload_turns), self.metrics.stage("encode picture"):
                check_size(content, most_pixels=MOST_PIXELS)
                query = self._searcher.image(content)
            self._uploaded[query.model, query.codes.packed.tobytes().hex()] = query
            while len(self._uploaded) > _REMEMBERED:
                self._uploaded.popitem(last=False)
            return query

        try:
            return self._found("picture", make, request, in_turn=False)
        except ImageLimitError as error:
            raise ProblemError(413, str(error)) from None

    def _found(
        self,
        kind: Kind,
        make: Callable[[], Query],
        request: Options,
        *,
        marks: Marks = lambda _: (),
        in_turn: bool = True,
    ) -> Found:
        """A page of hits; with ``in_turn``, the query is encoded within the slot of the search."""
        where = parse(request.where) if request.where.strip() else None

        def use(query: Query) -> Found:
            with self.metrics.stage("search"):
                found = self._searcher.search(
                    query, request.k + 1, to=request.to, where=where, skip=request.skip, rank=request.rank
                )
            with self.metrics.stage("describe"):
                hits = found[: request.k]
                pictures = self._has_images(hits)
                codes = self._codes((hit.item.id for hit in hits), request.to) if request.codes else {}
                shown = [_hit(hit, marks(hit.item.labels), pictures, codes) for hit in hits]
            code = query.codes.packed.tobytes().hex()
            return Found(
                query=Queried(kind=kind, code=code, model=query.model, bits=query.codes.bits),
                to=request.to,
                skip=request.skip,
                more=len(found) > request.k,
                hits=shown,
            )

        def use_in_turn(query: Query) -> Found:
            with self._turn(self._turns):
                return use(query)

        if not in_turn:
            return self._searcher.run(make, use_in_turn)
        with self._turn(self._turns):
            return self._searcher.run(make, use)

    @contextmanager
    def _turn(self, turns: Turns) -> Iterator[None]:
        """Wait for a slot and hold it during the block."""
        with ExitStack() as turn:
            with self.metrics.stage("wait"):
                turn.enter_context(turns.turn())
            yield

    def _has_images(self, hits: Iterable[Hit]) -> bool:
        """Whether image files are available; checking the first hit is enough, and faster than checking all."""
        some = next((hit.item for hit in hits if hit.item.picture is not None), None)
        try:
            return some is not None and self._searcher.store.picture_path(some) is not None
        except InputError:  # a link out of the image folder, so there is an image folder
            return True

    def _codes(self, ids: Iterable[str], modality: Modality) -> dict[str, str]:
        """Codes by ID in one request, since the store may be remote; items without a code are left out."""
        codes = self._searcher.store.codes(dict.fromkeys(ids), modality)
        return dict(zip(codes.ids.tolist(), (bytes(code).hex() for code in codes.packed), strict=True))

    def _item(self, name: str) -> Item:
        item = self._searcher.store.get(name)
        if item is None:
            raise ProblemError(404, "There is no item with this ID.")
        return item

    def _path(self, item: Item) -> Path | None:
        """Path of an item's image, or None if it has none that may be shown."""
        try:
            return self._searcher.store.picture_path(item)
        except InputError:  # a link out of the image folder
            return None

    def item(self, name: str) -> ItemCodes:
        """An item with its codes."""
        item, place = self._item(name), self._searcher.store
        image, text = (self._codes([name], modality).get(name) for modality in MODALITIES)
        return ItemCodes(
            id=item.id,
            text=item.text,
            labels=list(item.labels),
            has_picture=self._path(item) is not None,
            bits=place.generation().bits,
            image_code=image,
            text_code=text,
        )

    def picture(self, name: str, side: int) -> tuple[str, Callable[[], bytes]]:
        """The ETag of an item's thumbnail, and a function that renders it."""
        gone = ProblemError(404, "The image of this item is missing or unreadable.")
        path = self._path(self._item(name))
        if path is None or not path.is_file():
            raise gone

        def make() -> bytes:
            try:
                with self._turn(self._thumbnail_turns), self.metrics.stage("thumbnail"):
                    return self._thumbnails.jpeg(path, side)
            except (DataError, OSError):
                raise gone from None

        return etag(path, side), make

    def warm_up(self) -> list[str]:
        """Load the encoders before the first request; returns a sentence for each one that does not work."""
        sample = io.BytesIO()
        Image.new("RGB", (8, 8)).save(sample, "PNG")  # decoding it also starts the decoder process
        problems = []
        for modality in MODALITIES:
            try:
                if self._searcher.takes(modality):
                    self._searcher.text("a") if modality == "text" else self._searcher.image(sample.getvalue())
            except RmshError as error:
                problems.append(str(error))
        return problems


def _hit(hit: Hit, matching: Collection[str], pictures: bool, codes: Mapping[str, str]) -> FoundItem:
    item = hit.item
    return FoundItem(
        id=item.id,
        distance=hit.distance,
        text=item.text,
        labels=[Label(name=name, matches=name in matching) for name in item.labels],
        has_picture=pictures and item.picture is not None,
        code=codes.get(item.id),
        match=None if hit.match is None else Matched(**vars(hit.match)),
    )
