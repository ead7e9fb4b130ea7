"""What an operator watches, in the text form of Prometheus: requests, time, stages, refusals, memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Measured", "Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The measurements of one server.

    Args:
        items: tells how many items are served.
    """

    def __init__(self, items: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter("rmsh_requests", "Requests.", ["route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "rmsh_request_seconds", "From request to answer.", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self._stages = Histogram(
            "rmsh_stage_seconds", "Where the time goes.", ["stage"], buckets=_SECONDS, registry=self._registry
        )
        self._running = Gauge("rmsh_requests_in_progress", "Requests being answered.", registry=self._registry)
        Gauge("rmsh_items", "Items served.", registry=self._registry).set_function(items)

    def text(self) -> bytes:
        """All measurements, as Prometheus reads them."""
        return generate_latest(self._registry)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a block."""
        with self._stages.labels(name).time():
            yield

    @contextmanager
    def request(self) -> Iterator[Callable[[str, int], None]]:
        """Measure a request; the block tells its route and status when it knows them."""
        told: list[tuple[str, int]] = []
        start = time.perf_counter()
        with self._running.track_inprogress():
            try:
                yield lambda route, status: told.append((route, status))
            finally:
                route, status = told[-1] if told else ("none", 500)
                self._requests.labels(route, str(status)).inc()
                self._seconds.labels(route).observe(time.perf_counter() - start)


class Measured:
    """Measures every request that passes."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and measure it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._metrics.request() as tell:

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    # The route, not the path: paths are made by clients, and there is no end to them.
                    tell(getattr(scope.get("route"), "path", "none"), message["status"])
                await send(message)

            await self._app(scope, receive, watched)
