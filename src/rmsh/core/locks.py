"""A claim on a piece of work that any number of processes share a folder for.

A claim is a file whose lock a process holds. The system gives the lock back when the process ends, however it ends, so
that no claim outlives its holder and nobody has to guess who is still alive. For people, the file says who holds it.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Hold the claim of a file while the block runs; False where somebody else holds it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with claimed(Path(folder) / "a.claim") as mine, claimed(Path(folder) / "a.claim") as again:
        ...         mine, again
        (True, False)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:  # somebody finished the work and removed the folder in between
        yield False
        return
    try:
        mine = _lock(handle)
        if mine:
            os.ftruncate(handle, 0)
            os.write(handle, f"{socket.gethostname()} {os.getpid()}\n".encode())
        yield mine
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        os.lseek(handle, 1 << 20, os.SEEK_SET)  # beyond the text, which stays readable
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        os.lseek(handle, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
