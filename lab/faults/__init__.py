"""Faults: damaged files, killed processes, lost power and a long run, and what a library makes of them."""
