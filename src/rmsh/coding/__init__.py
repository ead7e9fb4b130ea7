"""Coding theory for labels: how much they say in bits, and how far apart codes of a given length can keep them."""

from __future__ import annotations

from rmsh.coding.bounds import Bounds, DeltaChoice, check_delta, choose_delta, lower_bound, upper_bound
from rmsh.coding.entropy import (
    LabelStatistics,
    binary_entropy,
    inverse_binary_entropy,
    label_entropy,
    similarity_entropy,
)

__all__ = [
    "Bounds",
    "DeltaChoice",
    "LabelStatistics",
    "binary_entropy",
    "check_delta",
    "choose_delta",
    "inverse_binary_entropy",
    "label_entropy",
    "lower_bound",
    "similarity_entropy",
    "upper_bound",
]
