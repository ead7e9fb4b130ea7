"""Measurements: quality on real data, speed and memory. Each writes JSON under bench/results and prints a table."""
