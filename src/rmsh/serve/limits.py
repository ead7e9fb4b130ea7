"""Limits on connections and requests, and error responses: one sentence as JSON, never a path or a traceback."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import h11
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from rmsh.core.errors import CodesError, InputError, RmshError

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from starlette.types import Message, Receive, Scope, Send

_log = logging.getLogger("rmsh.serve")
access_log = logging.getLogger("rmsh.serve.access")

SECURITY_HEADERS = {  # of every response
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class ProblemError(HTTPException):
    """An error response with its status and sentence."""


def _answer(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers={"Cache-Control": "no-store", **(headers or {})})


async def respond(problem: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
    """Send an error response from a middleware."""
    await _answer(problem.status_code, problem.detail, problem.headers)(scope, receive, send)


def explain_problems(app: FastAPI) -> None:
    """Register the error handlers."""
    app.add_exception_handler(RmshError, _rmsh_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


async def _rmsh_error(_: Request, error: Any) -> JSONResponse:
    if isinstance(error, CodesError):
        return _answer(409, "The code was made by another model than the library's; search again.")
    if isinstance(error, InputError):
        return _answer(400, str(error))
    _log.error("%s", error)  # may contain paths, which belong in the log only
    return _answer(503, "The library cannot be searched at the moment; see the server log.")


async def _invalid(_: Request, error: Any) -> JSONResponse:
    """The first invalid parameter and the reason."""
    first = error.errors()[0]
    where = [part for part in first["loc"] if isinstance(part, str) and part not in ("query", "body")]
    reason = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    if where == ["picture"]:
        reason = "give an image as a file in multipart/form-data"
    return _answer(422, f"{'.'.join(where) + ': ' if where else ''}{reason}.")


async def _http(request: Request, error: Any) -> JSONResponse:
    own = {} if isinstance(error, ProblemError) else {404: "Not found.", 405: "Method not allowed."}
    headers = dict(error.headers or {})
    if error.status_code == 405:  # Starlette names the methods of one route, and none for files
        routes = [route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE]
        methods = {method for route in routes for method in getattr(route, "methods", None) or ()}
        headers["Allow"] = ", ".join(sorted(methods or {"GET", "HEAD"}))
    return _answer(error.status_code, own.get(error.status_code, f"{str(error.detail).rstrip('.')}."), headers)


async def _bug(_: Request, __: Any) -> JSONResponse:
    return _answer(500, "Internal server error; see the server log.")


MOST_HITS = 100
MOST_SKIPPED = 10_000
MOST_TEXT = 1_000  # characters; an encoder reads 128 tokens of them
MOST_WHERE = 2_000
MOST_UPLOAD = 16 << 20  # bytes per image
MOST_PIXELS = 50_000_000
_FORM = 64 << 10  # bytes of a form around its image
_MOST_PARAMETERS = 100
MOST_CONNECTIONS = 256


def _busy() -> ProblemError:
    return ProblemError(503, "The server is busy; try again in a second.", headers={"Retry-After": "1"})


class Turns:
    """``running`` slots, and a queue for ``waiting`` requests for some seconds; further requests receive 503."""

    def __init__(self, running: int, waiting: int, *, seconds: float = 20.0) -> None:
        self._free = threading.Semaphore(running)
        self._queue = threading.Semaphore(running + waiting)
        self._seconds = seconds

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a slot during the block; raises ProblemError if the queue is full or the wait too long."""
        if not self._queue.acquire(blocking=False):
            raise _busy()
        try:
            if not self._free.acquire(timeout=self._seconds):
                raise _busy()
            try:
                yield
            finally:
                self._free.release()
        finally:
            self._queue.release()


def check_size(scope: Scope) -> int:
    """The most bytes that the body of a request may have; raises ProblemError if it announces more.

    The number of parameters is limited here, since validating them takes quadratic time.
    """
    if (count := scope["query_string"].count(b"&") + 1) > _MOST_PARAMETERS:
        raise ProblemError(400, f"The URL has {count:,} parameters; at most {_MOST_PARAMETERS} are allowed.")
    headers = dict(scope["headers"])
    if b"content-length" in headers and b"transfer-encoding" in headers:
        both = "A request has either Content-Length or Transfer-Encoding, not both."
        raise ProblemError(400, both, headers={"Connection": "close"})
    # Images wait on disk until they are decoded; any other body is held in memory.
    most = _FORM + (MOST_UPLOAD if scope["path"].endswith("/api/search") else 0)
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced[:20]) > most:
        raise _too_large(most)
    return most


def counted(receive: Receive, most: int) -> Receive:
    """Receive a body, and raise ProblemError when it has more bytes."""
    arrived = 0

    async def count() -> Message:
        nonlocal arrived
        message = await receive()
        arrived += len(message.get("body", b""))
        if arrived > most:
            raise _too_large(most)
        return message

    return count


def _too_large(most: int) -> ProblemError:
    what, allowed = ("image", f"{most >> 20} MB") if most > _FORM else ("request body", f"{most >> 10} KB")
    return ProblemError(413, f"The {what} is too large; at most {allowed} are allowed.")


def client_of(address: str) -> str:
    """What counts as one client: an IPv4 address, or an IPv6 network, since a machine may use any address of it.

    Example:
        >>> [client_of(address) for address in ("192.0.2.1", "2001:db8::1", "unknown")]
        ['192.0.2.1', '2001:db8::/64', 'unknown']
    """
    try:
        return str(ipaddress.ip_network((address, 64), strict=False)) if ":" in address else address
    except ValueError:
        return address


class Connection(H11Protocol):
    """An HTTP connection that is closed if its client is too slow, and refused if there are too many.

    A client that waits between two requests is given the time for headers, too. If there is no room, a connection
    without a request is closed, or else one that still sends a request, of a client with more connections: the longest
    of the client with the most. So idle connections keep nobody out, and slow ones of a few clients do not either.
    """

    header_seconds = 10.0  # for the headers of a request
    request_seconds = 30.0  # for the whole request; and for taking a response
    most_per_client = 64  # trusted proxies may have any number
    _timer: asyncio.TimerHandle | None = None
    _ended = False  # refused or lost

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if (connected := transport.get_extra_info("socket")) is not None:
            # Headers and body are two writes; without this the body waits 40 ms until the headers are acknowledged.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(0)  # so that pause_writing is called as soon as the client takes no more
        self._watch()
        address = self.client[0] if self.client else ""
        self._owner = client_of(address)
        others = [each for each in cast("set[Connection]", self.connections) if each is not self and not each._ended]
        held = Counter(each._owner for each in others)
        same = held[self._owner]
        if len(self.connections) > 2 * MOST_CONNECTIONS:  # refusals are not read, either
            transport.abort()
        elif same >= self.most_per_client and address not in self.config.forwarded_allow_ips:
            sentence = f"Your address has {same} connections; close one and try again."
            self._refuse(ProblemError(429, sentence, headers={"Retry-After": "1"}))
        elif len(others) >= MOST_CONNECTIONS:
            idle = [each for each in others if each.conn.their_state is h11.IDLE]
            sending = [
                each for each in others if each.conn.their_state is h11.SEND_BODY and held[each._owner] > same + 1
            ]
            last = max(idle or sending, key=lambda each: (held[each._owner], -each._began), default=self)
            last.shutdown() if idle else last._refuse(_busy())

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._ended = True
        self._watch()

    def data_received(self, data: bytes) -> None:
        if not self._ended:
            super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def _watch(self) -> None:
        """Set the deadline of what the client has to send next."""
        seconds = {h11.IDLE: self.header_seconds, h11.SEND_BODY: self.request_seconds}.get(self.conn.their_state, 0)
        if self._timer is None:
            self._began = self.loop.time()
        else:
            self._timer.cancel()
        waits = seconds > 0 and not self._ended
        self._timer = self.loop.call_at(self._began + seconds, self._expire) if waits else None

    def _expire(self) -> None:
        allowed = f"{self.header_seconds:g} seconds for its headers, {self.request_seconds:g} for all of it"
        self._refuse(ProblemError(408, f"The request did not arrive in time: {allowed}."))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.request_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stalled.cancel()

    def send_400_response(self, msg: str) -> None:
        self._refuse(ProblemError(400, msg))

    def _refuse(self, problem: ProblemError) -> None:
        """Answer at once, ignore what still arrives, and end the connection."""
        self._ended = True
        self._watch()
        access_log.info("%s refused: %d %s", self.client and self.client[0], problem.status_code, problem.detail)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = SECURITY_HEADERS | dict(problem.headers or {}) | {"Connection": "close"}
            answer = _answer(problem.status_code, problem.detail, headers)
            lines = [b"HTTP/1.1 %d %s" % (answer.status_code, STATUS_PHRASES[answer.status_code])]
            lines += [b"%s: %s" % header for header in answer.raw_headers]
            self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
            self.transport.write_eof()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.loop.call_later(1.0, self.transport.abort)  # a reset at once could overtake the answer
