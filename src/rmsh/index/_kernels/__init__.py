"""Compiled kernels of the indexes; importing one imports numba."""

from __future__ import annotations

from functools import partial

from rmsh.core.compiled import compile_kernel

kernel = partial(compile_kernel, nogil=True)  # decorators
inlined_kernel = partial(compile_kernel, nogil=True, forceinline=True)
