"""What a client may ask for at most: sizes as numbers, bodies as they arrive, and how many compute at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rmsh.serve.problems import ProblemError, respond

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MOST_HITS", "MOST_PIXELS", "MOST_SKIPPED", "MOST_TEXT", "MOST_UPLOAD", "MOST_WHERE", "BodyLimit", "Turns"]

MOST_HITS = 100
MOST_SKIPPED = 10_000
MOST_TEXT = 1_000  # characters; an encoder reads 128 tokens of them
MOST_WHERE = 2_000
MOST_UPLOAD = 16 << 20  # bytes of a picture
MOST_PIXELS = 50_000_000
_FORM = 64 << 10  # bytes of a form beside its picture
_BODY_SECONDS = 30.0


class Turns:
    """Lets a few compute at once and a few more wait; whoever comes then is told to come back.

    Args:
        running: how many compute.
        waiting: how many wait for their turn.
        seconds: how long they wait at most.
    """

    def __init__(self, running: int, waiting: int, *, seconds: float = 20.0) -> None:
        self._free = threading.Semaphore(running)
        self._places = threading.Semaphore(running + waiting)
        self._seconds = seconds

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A block that computes.

        Raises:
            ProblemError: too many compute and wait already.
        """
        if not self._places.acquire(blocking=False):
            raise _busy()
        try:
            if not self._free.acquire(timeout=self._seconds):
                raise _busy()
            try:
                yield
            finally:
                self._free.release()
        finally:
            self._places.release()


def _busy() -> ProblemError:
    return ProblemError(
        503, "Too many are searching at the moment; try again in a second.", headers={"Retry-After": "1"}
    )


class BodyLimit:
    """Refuses bodies that are too large, while they arrive, and those that do not arrive in time."""

    def __init__(self, app: ASGIApp, *, most: int = MOST_UPLOAD + _FORM, seconds: float = _BODY_SECONDS) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with a body that is watched."""
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
            if whole:  # what follows is the client's leaving, which may take any time
                return await receive()
            try:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
            except TimeoutError:
                raise ProblemError(408, f"The request did not arrive within {self._seconds:g} seconds.") from None
            arrived += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if arrived > self._most:
                raise self._too_large()
            return message

        return watched

    def _too_large(self) -> ProblemError:
        megabytes = self._most / (1 << 20)
        return ProblemError(413, f"The picture is too large; give one of at most {megabytes:.0f} MB.")
