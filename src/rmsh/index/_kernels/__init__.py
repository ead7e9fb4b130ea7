"""Compiled kernels of the indexes; importing one imports numba."""
