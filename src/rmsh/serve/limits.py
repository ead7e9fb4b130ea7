"""Limits on requests, and error responses: one sentence as JSON, never a path or a traceback."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from rmsh.core.errors import CodesError, InputError, RmshError

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("rmsh.serve")


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
    where = [str(part) for part in first["loc"] if part not in ("query", "body")]
    reason = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return _answer(422, f"{'.'.join(where) + ': ' if where else ''}{reason}.")


async def _http(_: Request, error: Any) -> JSONResponse:
    own = {} if isinstance(error, ProblemError) else {404: "Not found.", 405: "Method not allowed."}
    return _answer(error.status_code, own.get(error.status_code, str(error.detail)), error.headers)


async def _bug(_: Request, __: Any) -> JSONResponse:
    return _answer(500, "Internal server error; see the server log.")


MOST_HITS = 100
MOST_SKIPPED = 10_000
MOST_TEXT = 1_000  # characters; an encoder reads 128 tokens of them
MOST_WHERE = 2_000
MOST_UPLOAD = 16 << 20  # bytes per image
MOST_PIXELS = 50_000_000
_FORM = 64 << 10  # bytes of a form around its image
_BODY_SECONDS = 30.0


class Turns:
    """A limited number of slots with a bounded queue; further requests receive 503.

    Args:
        running: number of slots.
        waiting: length of the queue.
        seconds: longest wait in the queue.
    """

    def __init__(self, running: int, waiting: int, *, seconds: float = 20.0) -> None:
        self._free = threading.Semaphore(running)
        self._queue = threading.Semaphore(running + waiting)
        self._seconds = seconds

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a slot during the block; raises ProblemError if the queue is full or the wait too long."""
        busy = ProblemError(503, "The server is busy; try again in a second.", headers={"Retry-After": "1"})
        if not self._queue.acquire(blocking=False):
            raise busy
        try:
            if not self._free.acquire(timeout=self._seconds):
                raise busy
            try:
                yield
            finally:
                self._free.release()
        finally:
            self._queue.release()


class BodyLimit:
    """Middleware that rejects bodies that are too large or arrive too slowly."""

    def __init__(self, app: ASGIApp, *, most: int = MOST_UPLOAD + _FORM, seconds: float = _BODY_SECONDS) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced[:20]) > self._most:
            await respond(self._too_large(), scope, receive, send)
            return
        await self._app(scope, self._watched(receive), send)

    def _watched(self, receive: Receive) -> Receive:
        arrived, whole = 0, False

        async def watched() -> Message:
            nonlocal arrived, whole
            if whole:  # only the disconnect follows, at any time
                return await receive()
            try:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
            except TimeoutError:
                raise ProblemError(408, f"The request body did not arrive within {self._seconds:g} seconds.") from None
            arrived += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if arrived > self._most:
                raise self._too_large()
            return message

        return watched

    def _too_large(self) -> ProblemError:
        megabytes = self._most / (1 << 20)
        return ProblemError(413, f"The image is too large; at most {megabytes:.0f} MB are allowed.")
