"""Data: pairs of images and texts with labels, and the readers that return them."""
