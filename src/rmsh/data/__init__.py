"""Data: pairs of pictures and texts with labels, and the readers that make them."""
