"""Coding theory for labels: their entropy in bits, and the minimum distance that codes of a given length can keep."""

from __future__ import annotations

from rmsh.coding.bounds import DeltaChoice, choose_delta, lower_bound, upper_bound
from rmsh.coding.entropy import LabelStatistics, label_entropy

__all__ = ["DeltaChoice", "LabelStatistics", "choose_delta", "label_entropy", "lower_bound", "upper_bound"]
