"""Experiments: grids of runs, one JSON file a run."""
