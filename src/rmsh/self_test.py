"""The self-test: small runs of the real thing whose answers are known, for `rmsh doctor`.

A check is a function without arguments that returns what it did in a few words, and raises when an answer is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from rmsh.codes import Codes, hamming
from rmsh.errors import MissingExtraError, RmshError

__all__ = ["CHECKS", "Check", "Outcome", "run_checks"]


@dataclass(frozen=True)
class Check:
    """A named check of the self-test."""

    name: str
    run: Callable[[], str]


@dataclass(frozen=True)
class Outcome:
    """What a check found: a few words about what was done, or what went wrong."""

    name: str
    passed: bool
    detail: str
    seconds: float


def check_codes() -> str:
    """Compare packed distances with a count over Python integers, at lengths that do and do not fill their bytes."""
    rng = np.random.default_rng(0)
    for bits in (1, 13, 64, 512):
        values = rng.standard_normal((40, bits))
        codes = Codes.from_values(values)
        numbers = [int("".join("1" if z >= 0 else "0" for z in row), 2) for row in values]
        wanted = [[(a ^ b).bit_count() for b in numbers] for a in numbers]
        if hamming(codes.packed, codes.packed).tolist() != wanted:
            raise RmshError(f"Distances of {bits}-bit codes differ from a plain count; reinstall numpy and rmsh.")
    return "40 codes of 1, 13, 64 and 512 bits: all distances as counted by hand"


def check_metrics() -> str:
    """Compare NDCG with a case worked by hand, in which two items lie at the same distance."""
    from rmsh.metrics import evaluate  # compiles its kernels on first use

    query = Codes.from_values([[1, 1, 1]])
    database = Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, -1, 1]])
    found = evaluate(query, database, [[1, 1]], [[1, 0], [1, 1], [0, 0], [0, 0]], k=4).ndcg
    # Gains 1, then 3 and 0 in either order, then 0; the ideal order is 3, 1, 0, 0.
    ideal = 3 + 1 / log2(3)
    worst, best = (1 + 3 / log2(4)) / ideal, (1 + 3 / log2(3)) / ideal
    wanted = [(worst + best) / 2, worst, best]
    if not np.allclose([found.value, found.pessimistic, found.optimistic], wanted, rtol=0, atol=1e-12):
        raise RmshError(f"NDCG of a known case is {found}, but {wanted} is right; reinstall numba and rmsh.")
    return f"NDCG of a case with equal distances: {found.value:.4f}, as worked by hand"


def check_learning() -> str:
    """Learn codes of generated pairs and ask for scores well above chance; without torch there is nothing to check."""
    from rmsh.data.generated import generate_pairs
    from rmsh.methods import create
    from rmsh.metrics import evaluate

    pairs = generate_pairs(500)
    learned, asking = pairs.take(np.arange(400)), pairs.take(np.arange(400, 500))
    try:
        model = create("rmsh", bits=16, epochs=6, batch=64, hidden=64).fit(learned).model
    except MissingExtraError:
        return "not checked, torch is not installed"
    texts, pictures = model.encode(learned.features("text"), "text"), model.encode(asking.features("image"), "image")
    found = evaluate(pictures, texts, np.asarray(asking.labels), np.asarray(learned.labels), k=50).ndcg
    if found.value < 1.5 * found.chance:
        raise RmshError(
            f"Learned codes score NDCG@50 {found.value:.2f}, chance is {found.chance:.2f}; reinstall torch."
        )
    return f"codes of 400 generated pairs: NDCG@50 {found.value:.2f}, chance {found.chance:.2f}"


# Each is independent of the others; a new one is a line here and a function above.
CHECKS = (Check("codes", check_codes), Check("metrics", check_metrics), Check("learning", check_learning))


def run_checks(checks: Sequence[Check] = CHECKS) -> list[Outcome]:
    """Run every check; one that fails, for whatever reason, does not stop the others.

    Example:
        >>> [outcome] = run_checks([Check("sum", lambda: str(1 + 1))])
        >>> outcome.passed, outcome.detail
        (True, '2')
    """
    return [_run(check) for check in checks]


def _run(check: Check) -> Outcome:
    started = time.perf_counter()
    try:
        passed, detail = True, check.run()
    except Exception as error:  # a broken library may raise anything, and the user has to hear what
        passed, detail = False, str(error) if isinstance(error, RmshError) else f"{type(error).__name__}: {error}"
    return Outcome(check.name, passed, detail, time.perf_counter() - started)
