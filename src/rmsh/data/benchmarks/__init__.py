"""The benchmarks of the paper by name: each module declares one data set and reads its published files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import ConfigError
from rmsh.data.benchmarks import mirflickr25k, mscoco, nuswide

if TYPE_CHECKING:
    from rmsh.data.benchmarks.base import Benchmark, Source

BENCHMARKS: dict[str, Benchmark] = {
    "mirflickr25k": mirflickr25k.MIRFLICKR25K,
    "nuswide": nuswide.NUSWIDE,
    "mscoco": mscoco.MSCOCO,
}
READERS: dict[str, Callable[[Path], Source]] = {
    "mirflickr25k": mirflickr25k.read,
    "nuswide": nuswide.read,
    "mscoco": mscoco.read,
}


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of that name, or a ConfigError that lists all names.

    Example:
        >>> find_benchmark("mscoco").protocols[0].queries
        4956
    """
    if name not in BENCHMARKS:
        raise ConfigError(f"There is no benchmark {name!r}; known are {', '.join(BENCHMARKS)}.")
    return BENCHMARKS[name]
