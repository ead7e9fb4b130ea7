"""The index that chooses: scan or multi-index hashing, batch by batch, by what each took for searches of that kind.

Which is faster depends on how near the neighbours are, on k, on the batch and on the machine, so it is measured. The
first search of a kind runs some of its queries through the scan. Where their neighbours are so far that hashing would
visit more buckets than it can afford, the scan it is; otherwise the tables are built, the same queries run through
them, and the faster serves that kind. Both give the same results, so a wrong choice costs time and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from rmsh.index.base import Hits, Neighbours
from rmsh.index.mih import MultiIndex, buckets_within, cut, substring_count
from rmsh.index.scan import Scan, has_kernels

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, WordArray

__all__ = ["Auto", "Choice"]

_FEW_ROWS = 20_000  # fewer are scanned before a table is reached
_TRIED = 32  # queries of a batch that are timed

_Engine: TypeAlias = type[Scan]  # Scan, or MultiIndex
_Kind: TypeAlias = tuple[str, int, int]  # what is asked for, how much of it, how large a batch
_Run: TypeAlias = Callable[[_Engine, "WordArray"], Hits | Neighbours]


@dataclass(frozen=True)
class Choice:
    """Which way a search took, and why.

    Args:
        engine: "scan" or "mih".
        reason: one sentence without its full stop.
    """

    engine: Literal["scan", "mih"]
    reason: str


class Auto(MultiIndex):
    """The exact index that chooses between :class:`Scan` and :class:`MultiIndex`.

    Args:
        bits: the length of a code, 1 to 512.
        threads: how many to use at most; all where None.
        budget: of multi-index hashing.

    Example:
        >>> from rmsh.codes import Codes
        >>> index = Auto(3)
        >>> rows = index.add(Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1]]))
        >>> index.search(Codes.from_values([[1, 1, 1]]), 2).rows
        array([[0, 1]])
        >>> index.chosen
        Choice(engine='scan', reason='there are only 3 codes')
    """

    kind: ClassVar[str] = "auto"

    def __init__(self, bits: int, *, threads: int | None = None, budget: int | None = None) -> None:
        super().__init__(bits, threads=threads, budget=budget)
        self.chosen: Choice | None = None  # of the last search
        self._choices: dict[_Kind, Choice] = {}
        self._measured_rows = 0

    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        def run(engine: _Engine, some: WordArray) -> Hits:
            return engine._nearest(self, some, k, where)

        kind = ("k", k.bit_length(), _batch(words))
        return run(self._choose(kind, words, where, run=run), words)

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        def run(engine: _Engine, some: WordArray) -> Neighbours:
            return engine._within(self, some, radius, where)

        kind = ("radius", radius, _batch(words))
        return run(self._choose(kind, words, where, run=run), words)

    def _choose(self, kind: _Kind, words: WordArray, where: BitArray | None, *, run: _Run) -> _Engine:
        """The engine for a search of this kind, measured where it is the first."""
        if self.row_count > 1.5 * self._measured_rows:
            self._choices, self._measured_rows = {}, self.row_count
        obvious = self._obvious(where)
        if not obvious and kind not in self._choices:
            self._choices[kind] = self._measure(kind, words[:_TRIED], run)
        self.chosen = choice = Choice("scan", obvious) if obvious else self._choices[kind]
        return Scan if choice.engine == "scan" else MultiIndex

    def _obvious(self, where: BitArray | None) -> str:
        """Why to scan without measuring, or nothing."""
        if not has_kernels():
            return "numba is not installed"
        if self.row_count < _FEW_ROWS:
            return f"there are only {self.row_count:,} codes"
        return "" if where is None else "a mask is looked at while scanning"

    def _measure(self, kind: _Kind, words: WordArray, run: _Run) -> Choice:
        found, scan = _timed(partial(run, Scan, words))
        starts = cut(self.bits, substring_count(self.bits, self.row_count))
        reach = int(np.median(found.distances[:, -1])) if isinstance(found, Hits) else kind[1]
        buckets = buckets_within(starts, reach)
        if buckets > self._visits():
            return Choice(
                "scan", f"within {reach} bits there are {buckets:,} buckets to visit, and only {self.row_count:,} codes"
            )
        _, hashing = _timed(partial(run, MultiIndex, words))
        times = f"{1e3 * hashing / len(words):.3g} ms a query by mih and {1e3 * scan / len(words):.3g} ms by scan"
        return Choice("mih" if hashing < scan else "scan", f"{times}, measured on {len(words)}")


def _batch(words: WordArray) -> int:
    """Batches of about the same size are alike, and all that are large."""
    return min(len(words), _TRIED).bit_length()


def _timed(search: Callable[[], Hits | Neighbours]) -> tuple[Hits | Neighbours, float]:
    """What a search finds, and its seconds once everything is compiled and read."""
    found = search()
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        search()
        seconds.append(time.perf_counter() - start)
    return found, min(seconds)
