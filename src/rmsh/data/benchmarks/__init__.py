"""The benchmarks of the paper: their declarations, and a reader of the published files of each."""
