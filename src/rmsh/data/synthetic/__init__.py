"""Synthetic data: generated pairs."""
