"""The search service behind the HTTP routes: queries, pages of hits, items, thumbnails, and metrics of all of them."""

from __future__ import annotations

import io
import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakValueDictionary

import numpy as np
from PIL import Image
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from rmsh.codes import Codes
from rmsh.core.errors import DataError, ImageLimitError, InputError, RmshError
from rmsh.core.types import MODALITIES
from rmsh.features.images import read_size
from rmsh.index.filters import parse
from rmsh.search.query import Query
from rmsh.search.scoring import labels_in_text
from rmsh.serve.limits import MOST_PIXELS, MOST_TEXT, MOST_UPLOAD, ProblemError, Turns, access_log, client_of
from rmsh.serve.overview import Overview
from rmsh.serve.schemas import About, ItemCodes, Parameters, Parts
from rmsh.serve.thumbnails import Thumbnails, etag

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rmsh.core.types import Modality
    from rmsh.library.items import Hit, Item
    from rmsh.search.searcher import Searcher
    from rmsh.serve.schemas import Kind
    from rmsh.serve.workers import Workers


_WAITING = 64
_MOST_UPLOADS = 8  # decoded at once
_WAITING_UPLOADS = 8
_LARGE = 4_000_000  # pixels; larger uploads are decoded one at a time, because each may take 500 MB
_REMEMBERED = 256  # uploads


class SearchService:
    """Serves the requests of one server, ``name`` on the page; processes, if there are any, search by words."""

    def __init__(self, searcher: Searcher, *, name: str, workers: Workers | None = None) -> None:
        self._searcher = searcher
        self._workers = workers
        self._name = name
        running = os.cpu_count() or 1
        # Uploads and thumbnails have their own slots, so that they never delay a search.
        self._turns = Turns(running if workers is None else max(running, workers.count), _WAITING)
        # A client leaves one slot for uploads to others, however long its own take.
        self._uploads = min(running + 1, _MOST_UPLOADS)
        self._upload_turns = Turns(self._uploads, _WAITING_UPLOADS)
        self._client_turns: WeakValueDictionary[str, Turns] = WeakValueDictionary()
        self._large_turns = Turns(1, _MOST_UPLOADS)
        self._thumbnail_turns = Turns(running, _WAITING)
        self._thumbnails = Thumbnails()
        self._uploaded: OrderedDict[tuple[str, str], Query] = OrderedDict()  # by model and code, for further pages
        self.overview = Overview(searcher.store)
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
            composes=model.has_embedding,
            credit=self._searcher.store.credit(),
            warning=self._searcher.store.warning(),
            most_upload=MOST_UPLOAD,
            most_text=MOST_TEXT,
        )

    def check(self) -> None:
        """Raise if the library or collection does not respond."""
        self._searcher.store.generation()

    def search(self, request: Parameters) -> bytes:
        """Search by words, items and codes; returns a :class:`Found` as JSON."""
        with self._turn(self._turns):
            if self._workers is None or request.item or request.minus_item or request.model:
                return self._found(lambda: self._query(request), request)
            with self.metrics.stage("search process"):
                return self._workers.search(request)

    def search_image(self, file: IO[bytes], request: Parts, *, client: str = "") -> bytes:
        """Search by an uploaded image, which is read when its turn comes, and further parts; as :meth:`search`.

        ProblemError 413 if it is too large or takes too much time or memory, DataError if it is not an image.
        """

        def make() -> Query:
            own = self._client_turns.setdefault(client_of(client), Turns(self._uploads - 1, _WAITING_UPLOADS))
            with self._turn(own), self._turn(self._upload_turns):
                with self.metrics.stage("encode picture"):
                    file.seek(0)  # a library that is recoded meanwhile is searched again
                    content = file.read()
                    width, height = read_size(content, most_pixels=MOST_PIXELS)
                    with self._turn(self._large_turns) if width * height > _LARGE else nullcontext():
                        image = self._searcher.image(content)
                query = self._query(request, image)
            for each in (image, query):
                self._uploaded[each.model, each.codes.packed.tobytes().hex()] = each
            while len(self._uploaded) > _REMEMBERED:
                self._uploaded.popitem(last=False)
            return query

        try:
            return self._found(make, request, uploaded=True)
        except ImageLimitError as error:
            raise ProblemError(413, str(error)) from None

    def _query(self, request: Parts, *uploaded: Query) -> Query:
        """The sum of all parts of a request."""

        def part(code: str) -> Query:
            packed = np.frombuffer(bytes.fromhex(code), dtype=np.uint8)[None, :]
            known = self._uploaded.get((request.model or "", code))
            return known or Query(Codes(packed, self._searcher.model.bits, np.array(["query"])), request.model or "")

        plus, minus = (
            [*(self._searcher.item(name, by=request.by) for name in items), *map(part, codes)]
            for items, codes in ((request.item, request.code), (request.minus_item, request.minus_code))
        )
        if request.text is None:
            return self._searcher.compose([*uploaded, *plus], minus=minus)
        with self.metrics.stage("encode text"):
            if not (uploaded or plus or minus):
                return self._searcher.text(request.text)
            return self._searcher.compose([*uploaded, *plus], minus=minus, text=request.text)

    def _found(self, make: Callable[[], Query], request: Parts, *, uploaded: bool = False) -> bytes:
        """A page of hits as JSON; after an upload, which has its own slots, the search waits for one."""
        kind: Kind = "picture" if uploaded else "item" if request.item else "code" if request.code else "text"
        items = {name: self._item(name) for name in (*request.item, *request.minus_item)}
        known = {label for name in request.item for label in items[name].labels}
        where = parse(request.where) if request.where.strip() else None

        def use(query: Query) -> bytes:
            with self._turn(self._turns) if uploaded else nullcontext(), self.metrics.stage("search"):
                found = self._searcher.search(
                    query, request.k + 1, to=request.to, where=where, skip=request.skip, rank=request.rank
                )
            with self.metrics.stage("describe"):
                hits = found[: request.k]
                pictures = self._searcher.store.has_images
                codes = self._codes((hit.item.id for hit in hits), request.to) if request.codes else {}
                named = known | labels_in_text({label for hit in hits for label in hit.item.labels}, query.words.text)
                shown = [_hit(hit, named, pictures, codes) for hit in hits]
            made = {
                "kind": kind if len(query.weights) == 1 else "composed",
                "code": query.codes.packed.tobytes().hex(),
                "model": query.model,
                "bits": query.codes.bits,
            }
            facts = {"query": made, "to": request.to, "skip": request.skip, "more": len(found) > request.k}
            listed = {"hits": shown, "hints": self._searcher.hints(where)}
            return json.dumps({**facts, **listed}).encode()  # without a Found, whose checks take longer than all this

        return self._searcher.run(make, use)

    @contextmanager
    def _turn(self, turns: Turns) -> Iterator[None]:
        """Wait for a slot and hold it during the block."""
        with ExitStack() as turn:
            with self.metrics.stage("wait"):
                turn.enter_context(turns.turn())
            yield

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
                if self._searcher.takes(modality) and modality == "image":
                    self._searcher.image(sample.getvalue())
                elif self._searcher.takes(modality):
                    self.search(Parameters(text="a"))
            except RmshError as error:
                problems.append(str(error))
        return list(dict.fromkeys(problems))  # a damaged model is the problem of both


def _hit(hit: Hit, matching: Collection[str], pictures: bool, codes: Mapping[str, str]) -> dict[str, Any]:
    """A hit as :class:`FoundItem` describes it."""
    item = hit.item
    return {
        "id": item.id,
        "distance": hit.distance,
        "text": item.text,
        "labels": [{"name": name, "matches": name in matching} for name in item.labels],
        "has_picture": pictures and item.picture is not None,
        "code": codes.get(item.id),
        "match": None if hit.match is None else vars(hit.match),
    }


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one server; ``items`` returns the number of items served."""

    def __init__(self, items: Callable[[], int]) -> None:
        self._registry = own = CollectorRegistry()
        ProcessCollector(registry=own)
        self.requests = Counter("rmsh_requests", "Requests.", ["route", "status"], registry=own)
        self.seconds = Histogram("rmsh_request_seconds", "Request latency.", ["route"], buckets=_SECONDS, registry=own)
        self._stages = Histogram("rmsh_stage_seconds", "Time per stage.", ["stage"], buckets=_SECONDS, registry=own)
        self.running = Gauge("rmsh_requests_in_progress", "Requests in progress.", registry=own)
        Gauge("rmsh_items", "Items served.", registry=own).set_function(items)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def stage(self, name: str) -> AbstractContextManager[object]:
        """Time a block."""
        return self._stages.labels(name).time()


class MetricsMiddleware:
    """Middleware that times and logs every request."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        route, status, start = "none", 500, time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal route, status
            if message["type"] == "http.response.start":
                # The route, not the path: clients could create any number of paths.
                route, status = getattr(scope.get("route"), "path", "none"), message["status"]
            await send(message)

        with self._metrics.running.track_inprogress():
            try:
                await self._app(scope, receive, watched)
            finally:
                spent = time.perf_counter() - start
                self._metrics.requests.labels(route, str(status)).inc()
                self._metrics.seconds.labels(route).observe(spent)
                # Without the query, which may contain anything, and without headers, which may contain the token.
                client = (scope.get("client") or ("unknown",))[0]
                access_log.info("%s %s %s %d %.3f s", client, scope["method"], quote(scope["path"]), status, spent)
