"""Executors: the same work in this process, in local processes with one thread each, or in tasks of a Ray cluster.

Work is a function of rmsh, named as ``module:function``. Its tasks and results are plain JSON values; what is large is
written to a place that all machines share. A task whose worker is lost, because it was killed or its machine is gone,
is repeated, and so is one that could not read or write a file. Other errors are not; the remaining tasks go on.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import pkgutil
import signal
import socket
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Protocol, TypeAlias

from rmsh.core.errors import ConfigError, RmshError, require
from rmsh.features.decoding import THREADS, processors

Task: TypeAlias = Any  # plain JSON values

_TRIES = 4  # of a task whose worker is lost
_SECONDS = 10.0  # to connect to a cluster
_MOST_FAILURES = 10  # then no further task is started: all of them may fail

_VERSION = str(sys.modules["rmsh"].__version__)  # an import would be circular for type checkers

_log = logging.getLogger("rmsh.executors")


class Executor(Protocol):
    """Where work is done; requests and answers are those of :func:`answer`."""

    lost: tuple[type[BaseException], ...]  # what a future raises if its worker is lost

    @property
    def slots(self) -> int:
        """Number of requests to submit at a time."""

    def submit(self, request: str) -> Future[str]:
        """Start to answer a request."""

    def probe(self, request: str) -> Mapping[str, Future[str]]:
        """The answers of all other machines, by their names."""

    def close(self) -> None:
        """Stop all workers."""


def answer(request: str) -> str:
    """Do the work of a request; the answer has ``result``, or ``error``, or ``retry``, a reason to try again."""
    given = json.loads(request)
    try:
        if given["rmsh"] != _VERSION:
            found = f"rmsh {_VERSION} is installed there, and {given['rmsh']} here"
            raise RmshError(f"{found}; install the same version on all machines.")
        return json.dumps({"result": pkgutil.resolve_name(given["work"])(given["task"])})
    except RmshError as error:
        return json.dumps({"error": str(error)})
    except OSError as error:
        return json.dumps({"retry": str(error)})
    except Exception as error:  # a bug, which must not be taken for a lost worker
        _log.exception("%s failed", given["work"])
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def run(executor: Executor | None, work: str, tasks: Mapping[str, Task], *, check: str) -> Iterator[tuple[str, Any]]:
    """Do the work of tasks, given by name, and yield names with results in the order in which they finish.

    First, every machine does the work ``check`` on one of the tasks; RmshError names one that cannot. Lost tasks are
    repeated and reported in the log. At the end, RmshError names those that failed. Without an executor, tasks run
    in this process, and an error is raised at once.
    """
    if executor is None:
        function = pkgutil.resolve_name(work)
        yield from ((name, function(task)) for name, task in tasks.items())
        return
    for task in [*tasks.values()][:1]:
        for machine, future in executor.probe(_request(check, task)).items():
            if "result" not in (found := _found(executor, future)):
                raise RmshError(f"The machine {machine} cannot take part: {found.get('error') or found['retry']}")
    waiting, running, losses = deque(tasks), dict[Future[str], str](), Counter[str]()
    failures: dict[str, str] = {}
    while running or (waiting and len(failures) < _MOST_FAILURES):
        while waiting and len(running) < executor.slots and len(failures) < _MOST_FAILURES:
            name = waiting.popleft()
            running[executor.submit(_request(work, tasks[name]))] = name
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            name, found = running.pop(future), _found(executor, future)
            losses[name] += 1
            if "result" in found:
                yield name, found["result"]
            elif "retry" in found and losses[name] < _TRIES:
                _log.warning("%s is repeated: %s", name, found["retry"])
                waiting.append(name)
            else:
                failures[name] = found.get("error") or f"lost {_TRIES} times, at last: {found['retry']}"
    if failures:
        listed = " ".join(f"{name}: {reason}" for name, reason in failures.items())
        left = f", and {len(waiting):,} were not started" if waiting else ""
        raise RmshError(f"{len(failures):,} of {len(tasks):,} shards failed{left}; the others are kept. {listed}")


def _request(work: str, task: Task) -> str:
    return json.dumps({"rmsh": _VERSION, "work": work, "task": task})


def _found(executor: Executor, future: Future[str]) -> dict[str, Any]:
    """The answer of a worker, or why there is none."""
    try:
        return dict(json.loads(future.result()))
    except executor.lost as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        return {"retry": f"{type(error).__name__}: {reason}"}


class Processes:
    """Answers requests in local processes that have one thread each, by default one per processor.

    Each is a pool of its own, so that the others go on if it is lost. A script that uses them needs ``if __name__ ==
    "__main__":``, because they import it.
    """

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or processors()
        self._idle, self._pools = SimpleQueue[ProcessPoolExecutor](), set[ProcessPoolExecutor]()
        for _ in range(self.slots):
            self._start()

    def _start(self) -> None:
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin_worker)
        self._pools.add(pool)
        self._idle.put(pool)

    def submit(self, request: str) -> Future[str]:
        pool = self._idle.get()

        def give_back(future: Future[str]) -> None:
            if isinstance(future.exception(), BrokenProcessPool):
                self._pools.discard(pool)
                self._start()
            else:
                self._idle.put(pool)

        future = pool.submit(answer, request)
        future.add_done_callback(give_back)
        return future

    def probe(self, _request: str) -> Mapping[str, Future[str]]:
        return {}  # they are this machine

    def close(self) -> None:
        for pool in [*self._pools]:
            for process in [*(pool._processes or {}).values()]:
                process.kill()
            pool.shutdown(cancel_futures=True)


def begin_worker() -> None:
    """In a local process: use one thread, leave Ctrl-C to the parent, and end when the parent does."""
    os.environ[THREADS] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _answer_in_task(request: str) -> str:
    os.environ[THREADS] = "1"
    return answer(request)


class Ray:
    """Answers requests in tasks of a Ray cluster, with one processor each."""

    def __init__(self, address: str = "auto") -> None:
        self._ray: Any = require("ray", "ray")
        host, _, port = address.rpartition(":")
        try:
            if host and port.isdecimal():  # where nobody is, Ray would wait for minutes
                socket.create_connection((host, int(port)), _SECONDS).close()
            self._ray.init(address, log_to_driver=False, configure_logging=False)
        except (OSError, RuntimeError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise RmshError(
                f"No Ray cluster at {address} ({reason}); start one, or give --address HOST:PORT."
            ) from error
        self.lost: tuple[type[BaseException], ...] = (self._ray.exceptions.RayError,)
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(_answer_in_task)

    @property
    def slots(self) -> int:
        # Twice as many as there are workers, so that none of them waits for the next task.
        return max(1, 2 * int(self._ray.cluster_resources().get("CPU", 0)))

    def submit(self, request: str) -> Future[str]:
        future: Future[str] = self._task.remote(request).future()
        return future

    def probe(self, request: str) -> Mapping[str, Future[str]]:
        on_node: Any = require("ray.util.scheduling_strategies", "ray").NodeAffinitySchedulingStrategy
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        strategies = {
            f"{n['NodeManagerHostname']} ({n['NodeID'][:8]})": on_node(n["NodeID"], soft=False) for n in nodes
        }
        tasks = {n: self._task.options(num_cpus=0, scheduling_strategy=each) for n, each in strategies.items()}
        return {name: task.remote(request).future() for name, task in tasks.items()}

    def close(self) -> None:
        self._ray.shutdown()


@contextmanager
def open_executor(name: str | None, address: str | None = None) -> Iterator[Executor | None]:
    """An executor by name, closed at the end: "processes", "processes:N", or "ray" with an address; None for None."""
    kind, _, count = (name or "").partition(":")
    if address is not None and kind != "ray":
        raise ConfigError(f"--address is {address}, but only --executor ray has one; leave it out.")
    if name is None:
        yield None
        return
    if name != "ray" and (kind != "processes" or not count.isdecimal() == bool(count)):
        raise ConfigError(f"--executor is {name!r}; give processes, processes:N or ray, or leave it out.")
    executor: Executor = Ray(address or "auto") if name == "ray" else Processes(int(count or 0))
    try:
        yield executor
    finally:
        executor.close()
