"""Running parts of one search side by side, in threads of Python: the kernels release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from rmsh.errors import ConfigError

__all__ = ["check_threads", "run_all"]

T = TypeVar("T")


def check_threads(threads: int | None) -> int:
    """Return how many threads to use, all that this process may where None is given, or refuse the number.

    Example:
        >>> check_threads(2)
        2
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ConfigError(f"{threads!r} threads were asked for; give a whole number of at least 1, or None for all.")
    return threads


@cache  # by process: threads do not survive a fork
def _pool(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=256, thread_name_prefix="rmsh-search")  # started as they are needed


def run_all(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks at the same time, the first in this thread, and return what they return, in their order.

    Example:
        >>> run_all([lambda: 1, lambda: 2])
        [1, 2]
    """
    others = [_pool(os.getpid()).submit(task) for task in tasks[1:]]
    return [tasks[0](), *(task.result() for task in others)]
