"""Experiments: grids of runs, one JSON file a run, and everything a paper shows, made from those files alone."""
