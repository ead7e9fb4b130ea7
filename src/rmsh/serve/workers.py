"""Processes that search by words beside the server, since Python runs one thread of a process at a time.

Each opens the library itself and has its own text encoder; connections, limits, uploads and metrics stay in the server.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import LifoQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from rmsh.core.errors import RmshError
from rmsh.features.executors import begin_worker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from rmsh.search.searcher import Searcher

_TRIES = 2  # of a search whose worker is lost
_log = logging.getLogger("rmsh.serve")

Open: TypeAlias = "Callable[[], Searcher]"
Spent: TypeAlias = list[tuple[str, float]]  # names of stages, and their seconds


class _Worker(NamedTuple):
    process: Any  # its class depends on how it is started
    connection: Connection

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class Workers:
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
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _ in range(self.count):
            self._idle.get().stop()

    def warm_up(self) -> None:
        """Let every worker search once; raises as a search."""
        with ThreadPoolExecutor(self.count) as pool:  # the first search takes so long that each gets another worker
            deque(pool.map(self.search, ['{"text": "a"}'] * self.count), maxlen=0)

    def search(self, request: str) -> tuple[bytes, Spent]:
        """Answer :class:`Parameters`, given as JSON; returns :class:`Found` as JSON and the time of each stage.

        A worker that is lost, for example because there was no memory left, is replaced and the search repeated.
        """
        worker = self._idle.get()
        try:
            for _ in range(_TRIES):
                with suppress(OSError, EOFError):
                    worker.connection.send(request)
                    found, spent = worker.connection.recv()
                    if isinstance(found, Exception):
                        raise found
                    return found, spent
                worker.stop()
                _log.warning("A search process ended with exit code %s; starting another.", worker.process.exitcode)
                worker = self._start()
            raise RmshError("The search process was lost; look for its end in the log of the system.")
        finally:
            self._idle.put(worker)


class _Stages:
    """The time of each stage of a search, in place of the metrics of a server."""

    def __init__(self) -> None:
        self.spent: Spent = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.spent.append((name, time.perf_counter() - start))


def _answer(connection: Connection, open_searcher: Open) -> None:
    """In a worker: answer one request after another."""
    begin_worker()
    from rmsh.serve.schemas import Parameters
    from rmsh.serve.service import SearchService

    service: Any = SearchService(open_searcher(), name="")
    while True:
        request = Parameters.model_validate_json(connection.recv())
        service.metrics, found = _Stages(), b""
        try:
            found = service.search(request)
        except RmshError as error:
            found = error
        except Exception:
            _log.exception("A search failed.")
            found = RuntimeError("A search failed.")
        connection.send((found, service.metrics.spent))
