"""Prometheus metrics (requests, latency, time per stage, memory) and the access log."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from urllib.parse import quote

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from rmsh.serve.limits import access_log

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


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
