"""Synthetic data: generated pairs and drawn scenes."""
