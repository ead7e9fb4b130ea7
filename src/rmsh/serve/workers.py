"""Processes that search by words beside the server, since Python runs one thread of a process at a time.

Each opens the library itself and has its own text encoder; connections, limits, uploads and metrics stay in the server.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from queue import LifoQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rmsh.core import errors
from rmsh.core.errors import RmshError
from rmsh.features.executors import begin_worker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from rmsh.search.searcher import Searcher
    from rmsh.serve.schemas import Parameters

_TUNABLES = "GLIBC_TUNABLES"  # environment variable
_TRIES = 3  # of a search whose worker is lost
_STARTING = threading.Lock()  # the environment is that of the whole process
_FOUND = b"found"  # the first word of an answer; otherwise the name of an error
_log = logging.getLogger("rmsh.serve")

Open: TypeAlias = "Callable[[], Searcher]"


@contextmanager
def _huge_pages() -> Iterator[None]:
    """Let processes that are started meanwhile have large pages of memory, if their C library is that of GNU.

    A search touches many places of a hundred megabytes, and takes a twentieth less time.
    """
    before = os.environ.get(_TUNABLES)
    os.environ[_TUNABLES] = before or "glibc.malloc.hugetlb=1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_TUNABLES]


class _Worker(NamedTuple):
    process: Any  # its class depends on how it is started
    connection: Connection

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class Workers(AbstractContextManager["Workers"]):
    """A number of processes, each with the searcher that ``open_searcher`` returns there, until the block ends."""

    def __init__(self, count: int, open_searcher: Open) -> None:
        self.count = count
        self._open = open_searcher
        # The last one used is used first: what a search needs is in its caches.
        self._idle = LifoQueue[_Worker]()
        for _ in range(count):
            self._idle.put(self._start())

    def _start(self) -> _Worker:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=_answer, args=(theirs, self._open), daemon=True)
        with _STARTING, _huge_pages():
            process.start()
            theirs.close()
        return _Worker(process, ours)

    def __exit__(self, *_: object) -> None:
        for _number in range(self.count):
            self._idle.get().stop()

    def search(self, request: Parameters) -> bytes:
        """As :meth:`SearchService.search`.

        A worker that is lost, for example because there was no memory left, is replaced and the search repeated.
        """
        worker = self._idle.get()
        try:
            for _ in range(_TRIES):
                with suppress(OSError, EOFError):
                    worker.connection.send_bytes(request.model_dump_json().encode())
                    kind, _, found = worker.connection.recv_bytes().partition(b" ")
                    if kind != _FOUND:
                        error: type[Exception] = getattr(errors, kind.decode(), RuntimeError)
                        raise error(found.decode())
                    return found
                worker.stop()
                _log.warning("A search process ended with exit code %s; starting another.", worker.process.exitcode)
                worker = self._start()
            raise RmshError("The search process was lost; look for its end in the log of the system.")
        finally:
            self._idle.put(worker)


def _answer(connection: Connection, open_searcher: Open) -> None:
    """In a worker: answer one request after another."""
    begin_worker()
    from rmsh.serve.schemas import Parameters
    from rmsh.serve.service import SearchService

    searcher = open_searcher()
    service = SearchService(searcher, name="")
    with suppress(RmshError):  # every search would raise it
        searcher.text("a")
    with suppress(EOFError, OSError):  # the server is gone
        while True:
            request = Parameters.model_validate_json(connection.recv_bytes())
            kind, found = b"Exception", b"A search failed."
            try:
                kind, found = _FOUND, service.search(request)
            except RmshError as error:
                kind, found = type(error).__name__.encode(), str(error).encode()
            except Exception:
                _log.exception("A search failed.")
            connection.send_bytes(kind + b" " + found)
