"""The benchmarks of the paper by name: each module declares one data set and reads its published files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.data.benchmarks import mirflickr25k, mscoco, nuswide

if TYPE_CHECKING:
    from rmsh.data.benchmarks.base import Benchmark, Source

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (mirflickr25k.MIRFLICKR25K, nuswide.NUSWIDE, mscoco.MSCOCO)
}
READERS: dict[str, Callable[[Path], Source]] = {
    "mirflickr25k": mirflickr25k.read,
    "nuswide": nuswide.read,
    "mscoco": mscoco.read,
}
