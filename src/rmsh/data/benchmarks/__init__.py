"""The benchmark data sets: their declarations, readers and splits."""
