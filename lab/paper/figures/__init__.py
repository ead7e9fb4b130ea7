"""Figures, by subject; each is made from result files alone, or from a small file of points or examples."""
