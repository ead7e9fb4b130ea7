"""The data sets of the paper: their declarations, readers of their published files, and prepared pairs."""
