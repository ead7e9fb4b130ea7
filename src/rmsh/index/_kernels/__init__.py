"""Compiled kernels of the indexes."""
