"""Locks on work that several processes share through a folder.

The operating system releases a lock when its process ends for any reason, so a crashed process blocks nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Lock a file while the block runs, without waiting; yields False if the lock is already held.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with try_lock(Path(folder) / "a.lock") as first, try_lock(Path(folder) / "a.lock") as second:
        ...         first, second
        (True, False)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except (Timeout, FileNotFoundError):  # not found: another process finished the work and removed the folder
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
