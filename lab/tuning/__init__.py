"""Trials on validation data, and what they chose."""
