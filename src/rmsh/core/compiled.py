"""What compiled kernels share: how a function is compiled and kept on disk, and the count of the ones of a word.

Importing this file imports numba, so only kernel files do. numba compiles a kernel anew when the kernel's own file
changes, and not when something it takes from here does: after a change here, empty the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic


def compile_kernel(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    """Compile with numba and keep the machine code on disk, or in memory only where no folder can be written.

    numba looks for a folder when the function is decorated, and raises where neither the package's own, nor the
    user's, nor ``NUMBA_CACHE_DIR`` is writable: a read-only container must still be able to search and evaluate.
    """
    njit: Any = numba.njit
    try:
        compiled: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:
        compiled = njit(**options)(function)
    return compiled


def _type_popcount(_context: Any, _word: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount: Any = intrinsic(_type_popcount)  # the ones of a 64-bit word: the processor's own instruction
