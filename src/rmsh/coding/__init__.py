"""Coding theory for labels: their entropy in bits, and the minimum distance that codes of a given length can keep."""
