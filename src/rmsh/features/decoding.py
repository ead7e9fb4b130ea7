"""Decodes image files in other processes, which are stopped when an image takes too much time or memory.

A few hundred bytes can describe an image that keeps a decoder busy for a minute, or that takes gigabytes. Such work
cannot be interrupted inside a process, so images are decoded by a few small worker processes that start when they are
first needed and serve one image after another. One that exceeds a limit is killed, its image is refused, and the next
image gets a new worker.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from rmsh.core.errors import RmshError
from rmsh.features.decoding_worker import ANSWER, MEASURED, PIXELS, READY, REFUSED, REQUEST, UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_Pixels: TypeAlias = "NDArray[np.uint8]"
T = TypeVar("T")

SECONDS = 5.0  # of processor time per image, and half of the elapsed time that it may take on a busy machine
MEMORY = 512 << 20  # bytes by which one image may make a worker grow
_MOST_WORKERS = 16
_START_SECONDS = 60.0  # for a worker to load Pillow, from a slow disk perhaps
_WATCH_SECONDS = 0.1  # between looks at the clock
_LONGEST_REASON = 1 << 14  # bytes; a worker that announces more is not obeying the protocol
_PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; from rmsh.features.decoding_worker import main; main()"


class UnreadableError(Exception):
    """The file cannot be decoded; the message is the reason, without a subject."""


class LimitExceededError(Exception):
    """The image exceeds a limit; the message says which, without a subject."""


@dataclass(frozen=True)
class _Request:
    """The arguments of :meth:`Decoder.decode`."""

    image: bytes | str
    decodes: bool
    size: tuple[int, int] | None
    fit: int | None
    most_pixels: int

    def head_and_body(self) -> tuple[bytes, bytes]:
        is_path = isinstance(self.image, str)
        # A worker keeps the folder it was started in, whatever this process changes to.
        body = os.fsencode(os.path.abspath(self.image)) if isinstance(self.image, str) else self.image
        width, height = self.size or (0, 0)
        head = REQUEST.pack(self.decodes, is_path, width, height, self.fit or 0, self.most_pixels, len(body))
        return head, body

    def allows(self, width: int, height: int) -> bool:
        """Whether an answer may have this size; a compromised decoder could send anything."""
        if self.size is not None and self.decodes:
            return (width, height) == self.size
        side = self.fit if self.fit is not None else self.most_pixels
        return 0 < width <= side and 0 < height <= side and width * height <= self.most_pixels


class _Worker:
    """One process, used by one thread at a time."""

    def __init__(self, seconds: float, memory: int) -> None:
        self._seconds, self._memory = seconds, memory
        self._process = _start(seconds, memory)
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("io.RawIOBase", self._process.stdout)
        self.pid = self._process.pid
        self._guard = threading.Lock()
        self._deadline: float | None = None
        self._expired = False
        self.ends = False  # whether the process has said that it ends

    def wait_until_ready(self) -> None:
        """Return when the process takes requests; raises RmshError if it does not start."""
        try:
            kind = self._within(_START_SECONDS, self._head)[0]
        except (OSError, EOFError):
            kind = None
        if kind != READY:
            self.stop()
            raise _not_started(f"exit code {self._process.returncode}")

    def alive(self) -> bool:
        return not self.ends and self._process.poll() is None

    def ask(self, request: _Request) -> _Pixels | tuple[int, int]:
        """The answer to a request; afterwards the worker is usable only if it is still :meth:`alive`."""
        try:
            return self._within(2 * self._seconds, lambda: self._exchange(request))
        except (OSError, EOFError):
            self.stop()
            raise self._reason_of_death() from None
        except (UnreadableError, LimitExceededError):
            raise
        except BaseException:  # interrupted in the middle of an answer
            self.stop()
            raise

    def _within(self, seconds: float, call: Callable[[], T]) -> T:
        """The result of a call, which fails if :meth:`kill_if_late` finds it running after so many seconds."""
        self._deadline = time.monotonic() + seconds
        try:
            return call()
        finally:
            with self._guard:
                self._deadline = None

    def kill_if_late(self) -> None:
        with self._guard:
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._expired = True
                self._process.kill()

    def _exchange(self, request: _Request) -> _Pixels | tuple[int, int]:
        head, body = request.head_and_body()
        self._write(head)
        self._write(body)
        kind, last, width, height = self._head()
        self.ends = bool(last)
        if kind in (REFUSED, UNREADABLE) and width <= _LONGEST_REASON:
            reason = bytes(self._read(width)).decode(errors="replace")
            raise self._too_much_memory() if not reason else _ERRORS[kind](reason)
        if kind not in (PIXELS, MEASURED) or not request.allows(width, height):
            raise EOFError
        if kind == MEASURED:
            return width, height
        return np.frombuffer(self._read(3 * width * height), np.uint8).reshape(height, width, 3)

    def _head(self) -> tuple[int, int, int, int]:
        kind, last, width, height = ANSWER.unpack(self._read(ANSWER.size))
        return kind, last, width, height

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[self._input.write(left) or 0 :]

    def _read(self, count: int) -> bytearray:
        content = bytearray(count)
        left = memoryview(content)
        while left:
            got = self._output.readinto(left)
            if not got:
                raise EOFError
            left = left[got:]
        return content

    def _too_much_memory(self) -> LimitExceededError:
        return LimitExceededError(f"decoding it takes more than {self._memory >> 20} MB of memory")

    def _reason_of_death(self) -> Exception:
        if self._expired or self._process.returncode == -getattr(signal, "SIGPROF", 0):
            return LimitExceededError(f"decoding it takes more than {self._seconds:g} seconds")
        return UnreadableError(f"the decoder crashed on it (exit code {self._process.returncode})")

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def stop(self) -> None:
        """Kill the process and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close the pipes and leave the process alone: after a fork it is the parent's."""
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()
        if self._process.returncode is None:
            self._process.returncode = 0  # or else Popen would warn about, and try to reap, a process of the parent


def _start(seconds: float, memory: int) -> subprocess.Popen[bytes]:
    path = [entry or os.getcwd() for entry in sys.path]
    try:
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
            [sys.executable, "-c", _PROGRAM, str(seconds), str(memory), *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=_environment(),
        )
    except OSError as error:  # no memory or no process left
        raise _not_started(str(error)) from error
    with suppress(ImportError, AttributeError, OSError):  # Linux: a whole image fits, so neither side waits
        import fcntl

        fcntl.fcntl(cast("IO[bytes]", process.stdout), fcntl.F_SETPIPE_SZ, 1 << 18)
    return process


def _not_started(reason: str) -> RmshError:
    return RmshError(
        f"The image decoder did not start ({reason}); check that {sys.executable} can import rmsh and that the system "
        "has room for another process."
    )


_ERRORS = {REFUSED: LimitExceededError, UNREADABLE: UnreadableError}


def _environment() -> dict[str, str]:
    """Our environment without secrets; one thread and one heap, because each more counts as used memory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RMSH_", "MILVUS_"))}
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}


class Decoder:
    """Decodes image files in worker processes; any number of threads may use one.

    Args:
        workers: the most processes at a time; further threads wait. By default twice the number of processors.
        seconds: processor time per image.
        memory: bytes by which one image may make a worker grow.

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
        self._watched = False
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []  # the last one used is reused first, so that few are started

    def decode(
        self,
        image: bytes | str,
        *,
        size: tuple[int, int] | None = None,
        fit: int | None = None,
        most_pixels: int,
    ) -> _Pixels:
        """Pixels of the first frame, upright, uint8 (height, width, 3).

        Args:
            image: content of an image file, or its path.
            size: width and height to resize to; the image's own if None.
            fit: instead of ``size``, the side of a square to shrink the image into, keeping its proportions.
            most_pixels: an image with more is refused before it is decoded.

        Raises:
            LimitExceededError: the image takes more time, memory or pixels than allowed.
            UnreadableError: the file is damaged, or not an image.
        """
        return cast("_Pixels", self._ask(_Request(image, True, size, fit, most_pixels)))

    def size(self, image: bytes | str, *, most_pixels: int) -> tuple[int, int]:
        """Width and height as stored, from the header alone; raises as :meth:`decode` does."""
        return cast("tuple[int, int]", self._ask(_Request(image, False, None, None, most_pixels)))

    def _ask(self, request: _Request) -> _Pixels | tuple[int, int]:
        with self._free:
            worker = self._take()
            try:
                return worker.ask(request)
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
            if not self._watched:
                self._watched = True
                threading.Thread(target=self._watch, name="rmsh-decoding", daemon=True).start()
        try:
            worker.wait_until_ready()
        except BaseException:
            self._give_back(worker)
            raise
        return worker

    def _watch(self) -> None:
        """Kill workers that are late, until there are no workers; a separate thread adds no time per image."""
        while True:
            time.sleep(_WATCH_SECONDS)
            with self._guard:
                if not self._workers:
                    self._watched = False
                    return
                for worker in self._workers:
                    worker.kill_if_late()

    def _give_back(self, worker: _Worker) -> None:
        with self._guard:
            if worker in self._workers and worker.alive():
                self._idle.append(worker)
                return
            self._workers.discard(worker)
        worker.stop()

    def pids(self) -> list[int]:
        """Process ids of the workers that run at present."""
        with self._guard:
            return [worker.pid for worker in self._workers]

    def close(self) -> None:
        """Stop all workers; images being decoded are refused, and later ones start new workers."""
        with self._guard:
            busy, idle = self._workers.difference(self._idle), self._idle
            self._workers, self._idle = set(), []
        for worker in busy:
            worker.kill()  # the thread that uses it notices, and cleans up
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
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_DECODERS: weakref.WeakSet[Decoder] = weakref.WeakSet()
_SHARED = Decoder()


def shared_decoder() -> Decoder:
    """The decoder that the whole process uses."""
    return _SHARED


def _close_all() -> None:
    for decoder in list(_DECODERS):
        decoder.close()


def _forget_all() -> None:
    for decoder in list(_DECODERS):
        decoder.after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
