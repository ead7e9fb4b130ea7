"""Shared parts of the compiled kernels: compilation with a cache on disk, and a bit count.

Importing this module imports numba, so only kernel modules do. numba recompiles a kernel when the kernel's own file
changes, but not when this one does: after a change here, delete the ``__pycache__`` folders.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic


def compile_kernel(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    """Compile with numba and cache the machine code on disk, or in memory if no folder is writable.

    numba looks for a cache folder when the function is decorated and raises RuntimeError if neither the package folder
    nor the user's cache nor ``NUMBA_CACHE_DIR`` is writable, as in a read-only container.
    """
    njit: Any = numba.njit
    try:
        compiled: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:
        compiled = njit(**options)(function)
    return compiled


kernel = partial(compile_kernel, nogil=True)  # decorators
inlined_kernel = partial(compile_kernel, nogil=True, forceinline=True)


def _type_popcount(_context: Any, _word: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount: Any = intrinsic(_type_popcount)  # the number of ones in a 64-bit word, one processor instruction
