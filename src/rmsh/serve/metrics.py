"""Prometheus metrics: requests, latency, time per stage, memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one server; ``items`` returns the number of items served."""

    def __init__(self, items: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter("rmsh_requests", "Requests.", ["route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "rmsh_request_seconds",
            "Request latency.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._stages = Histogram(
            "rmsh_stage_seconds", "Time per stage.", ["stage"], buckets=_SECONDS, registry=self._registry
        )
        self._running = Gauge("rmsh_requests_in_progress", "Requests in progress.", registry=self._registry)
        Gauge("rmsh_items", "Items served.", registry=self._registry).set_function(items)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a block."""
        with self._stages.labels(name).time():
            yield

    @contextmanager
    def request(self) -> Iterator[Callable[[str, int], None]]:
        """Time a request; the block reports route and status once they are known."""
        reported: list[tuple[str, int]] = []
        start = time.perf_counter()
        with self._running.track_inprogress():
            try:
                yield lambda route, status: reported.append((route, status))
            finally:
                route, status = reported[-1] if reported else ("none", 500)
                self._requests.labels(route, str(status)).inc()
                self._seconds.labels(route).observe(time.perf_counter() - start)


class MetricsMiddleware:
    """Middleware that times every request."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._metrics.request() as report:

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    # The route, not the path: clients could create any number of paths.
                    report(getattr(scope.get("route"), "path", "none"), message["status"])
                await send(message)

            await self._app(scope, receive, watched)
