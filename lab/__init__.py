"""Measurements: quality on real data, speed and memory. Each writes JSON under lab/results and prints a table."""

import lab.methods  # noqa: F401  # adds them to the registry
