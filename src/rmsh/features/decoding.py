"""Decodes image files in other processes, which are stopped when an image takes too much time or memory.

A few hundred bytes can describe an image that keeps a decoder busy for a minute, or that takes gigabytes. Such work
cannot be interrupted inside a process, so images are decoded by a few small worker processes that start when they are
first needed and serve one image after another. One that exceeds a limit is killed and replaced, and its image is
refused.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rmsh.core.errors import DataError, ImageLimitError, RmshError
from rmsh.features.decoding_worker import ANSWER, DESCRIBED, MEASURED, PIXELS, READY, REFUSED, REQUEST, UNREADABLE
from rmsh.features.photo import Photo

_Pixels: TypeAlias = "NDArray[np.uint8]"

THREADS = "RMSH_THREADS"  # environment variable: number of processors to use, instead of all
SECONDS = 5.0  # of processor time per image, and half of the elapsed time that it may take on a busy machine
MEMORY = 512 << 20  # bytes by which one image may make a worker grow
_MOST_WORKERS = 16
_START_SECONDS = 60.0  # for a worker to load Pillow, from a slow disk perhaps
_LONGEST_TEXT = 1 << 18  # bytes; a worker that announces more violates the protocol
_PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; from rmsh.features.decoding_worker import main; main()"


class _Worker:
    """One process, used by one thread at a time; the constructor returns when it takes requests."""

    def __init__(self, seconds: float, memory: int) -> None:
        self._seconds, self._memory = seconds, memory
        self._expired = False
        self._ends = False  # whether the process has said that it ends
        path = [entry or os.getcwd() for entry in sys.path]
        try:
            self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                [sys.executable, "-c", _PROGRAM, str(seconds), str(memory), *path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # after a fork, the child must have nothing left to write
                env=_environment(),
            )
        except OSError as error:  # no memory or no process left
            raise _not_started(str(error)) from error
        self._input = cast("IO[bytes]", self.process.stdin)
        self._output = io.BufferedReader(cast("io.RawIOBase", self.process.stdout))
        try:
            with self._time_limit(_START_SECONDS):
                ready = self._read(ANSWER.size)[0] == READY
        except EOFError:
            ready = False
        except BaseException:
            self.stop()
            raise
        if not ready:
            self.stop()
            raise _not_started(f"exit code {self.process.returncode}")

    def alive(self) -> bool:
        return not self._ends and self.process.poll() is None

    def ask(
        self, head: bytes, body: bytes, *, size: tuple[int, int] | None, most_side: int, most_pixels: int
    ) -> _Pixels | tuple[int, int] | Photo:
        """The answer to a request; afterwards the worker is usable only if it is still :meth:`alive`."""
        try:
            with self._time_limit(2 * self._seconds):
                for content in (head, body):
                    left = memoryview(content)
                    while left:
                        left = left[self._input.write(left) or 0 :]
                kind, self._ends, width, height = ANSWER.unpack(self._read(ANSWER.size))
                # A compromised decoder could send anything.
                if kind in (REFUSED, UNREADABLE, DESCRIBED) and width <= _LONGEST_TEXT:
                    text = self._read(width).decode(errors="replace")
                    if kind == DESCRIBED:
                        return Photo.parse(json.loads(text))
                    reason = text or f"decoding it takes more than {self._memory >> 20} MB of memory"
                    raise ImageLimitError(reason) if kind == REFUSED else DataError(reason)
                expected = (width, height) == size if size else max(width, height) <= most_side
                if kind not in (PIXELS, MEASURED) or not expected or not 0 < width * height <= most_pixels:
                    raise EOFError
                if kind == MEASURED:
                    return width, height
                return np.frombuffer(self._read(3 * width * height), np.uint8).reshape(height, width, 3)
        except DataError:
            raise
        except (OSError, EOFError, ValueError):
            self.stop()
            if self._expired or self.process.returncode == -getattr(signal, "SIGPROF", 0):
                raise ImageLimitError(f"decoding it takes more than {self._seconds:g} seconds") from None
            raise DataError(f"the decoder crashed on it (exit code {self.process.returncode})") from None
        except BaseException:  # interrupted in the middle of an answer
            self.stop()
            raise

    @contextmanager
    def _time_limit(self, seconds: float) -> Iterator[None]:
        """Kill the process if the block takes longer, so that reading from it ends."""

        def expire() -> None:
            self._expired = True
            self.process.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _read(self, count: int) -> bytes:
        content = self._output.read(count)
        if len(content) < count:
            raise EOFError
        return content

    def stop(self) -> None:
        """Kill the process and wait until it is gone."""
        self.process.kill()
        self.process.wait()
        self.forget()

    def forget(self) -> None:
        """Close the pipes and leave the process alone: after a fork it is the parent's."""
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()
        if self.process.returncode is None:
            self.process.returncode = 0  # or else Popen would warn about, and try to reap, a process of the parent


def _not_started(reason: str) -> RmshError:
    return RmshError(
        f"The image decoder did not start ({reason}); check that {sys.executable} can import rmsh and that the system "
        "has room for another process."
    )


def _environment() -> dict[str, str]:
    """Our environment without secrets; one thread and one heap, because each more counts as used memory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RMSH_", "MILVUS_"))}
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}


class Decoder:
    """Decodes image files in worker processes; any number of threads may use one.

    At most ``workers`` processes run at a time, by default twice the number of processors; further threads wait.
    ``seconds`` is the processor time per image, ``memory`` the bytes by which one image may make a worker grow.

    Example:
        >>> import io
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (8, 6), "red").save(file, "PNG")
        >>> decoder = Decoder(workers=1)
        >>> decoder.decode(file.getvalue(), size=(2, 2), most_pixels=100).tolist()
        [[[255, 0, 0], [255, 0, 0]], [[255, 0, 0], [255, 0, 0]]]
        >>> decoder.close()
    """

    def __init__(self, *, workers: int | None = None, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._most = workers or min(2 * processors(), _MOST_WORKERS)
        self._seconds, self._memory = seconds, memory
        self._reset()
        _DECODERS.add(self)

    def _reset(self) -> None:
        self._free = threading.BoundedSemaphore(self._most)
        self._guard = threading.Lock()
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []  # the last one used is reused first, so that few are started

    def decode(
        self, image: bytes | str, *, size: tuple[int, int] | None = None, fit: int | None = None, most_pixels: int
    ) -> _Pixels:
        """Pixels of an image file given by its content or path, uint8 (height, width, 3).

        Arguments and errors are those of :func:`rmsh.features.images.read_image`, but messages have no subject.
        """
        return cast("_Pixels", self._ask(image, PIXELS, size, fit, most_pixels))

    def size(self, image: bytes | str, *, most_pixels: int) -> tuple[int, int]:
        """Width and height as stored, from the header alone; raises as :meth:`decode` does."""
        return cast("tuple[int, int]", self._ask(image, MEASURED, None, None, most_pixels))

    def photo(self, image: bytes | str, *, most_pixels: int) -> Photo:
        """The metadata of the file; raises as :meth:`decode` does."""
        return cast("Photo", self._ask(image, DESCRIBED, None, None, most_pixels))

    def _ask(
        self, image: bytes | str, kind: int, size: tuple[int, int] | None, fit: int | None, most_pixels: int
    ) -> _Pixels | tuple[int, int] | Photo:
        # A worker keeps the folder it was started in, whatever this process changes to.
        body = os.fsencode(os.path.abspath(image)) if isinstance(image, str) else image
        width, height = size or (0, 0)
        head = REQUEST.pack(kind, isinstance(image, str), width, height, fit or 0, most_pixels, len(body))
        with self._free:
            worker = self._take()
            try:
                return worker.ask(head, body, size=size, most_side=fit or most_pixels, most_pixels=most_pixels)
            finally:
                self._give_back(worker)

    def _take(self) -> _Worker:
        with self._guard:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive():
                    return worker
                self._workers.discard(worker)
                worker.stop()
        worker = _Worker(self._seconds, self._memory)
        with self._guard:
            self._workers.add(worker)
        return worker

    def _give_back(self, worker: _Worker) -> None:
        with self._guard:
            ours = worker in self._workers  # and not closed
            if ours and worker.alive():
                self._idle.append(worker)
                return
            self._workers.discard(worker)
        worker.stop()
        if ours:
            with suppress(RmshError):  # the next image reports it
                self._idle.append(self._take())  # now, so that the next image does not wait for a worker to start

    def pids(self) -> list[int]:
        """Process ids of the workers that run at present."""
        with self._guard:
            return [worker.process.pid for worker in self._workers]

    def close(self) -> None:
        """Stop all workers; images being decoded are refused, and later ones start new workers."""
        with self._guard:
            busy, idle = self._workers.difference(self._idle), self._idle
            self._workers, self._idle = set(), []
        for worker in busy:
            worker.process.kill()  # the thread that uses it notices, and cleans up
        for worker in idle:
            worker.stop()

    def after_fork(self) -> None:
        """Leave the workers to the parent process: answers in a shared pipe would get mixed up."""
        workers = self._workers
        self._reset()
        for worker in workers:
            worker.forget()


def processors() -> int:
    """Number of processors this process may use."""
    if (given := os.environ.get(THREADS, "")).isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_DECODERS: weakref.WeakSet[Decoder] = weakref.WeakSet()
_SHARED = Decoder()


def shared_decoder() -> Decoder:
    """The decoder that the whole process uses."""
    return _SHARED


@atexit.register
def _close_all() -> None:
    for decoder in list(_DECODERS):
        decoder.close()


def _after_fork() -> None:
    for decoder in list(_DECODERS):
        decoder.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
