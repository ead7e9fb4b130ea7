"""Data cards: what a data set holds, what a random ranking scores on it, and which delta its labels allow."""

from __future__ import annotations

from rmsh.datacard.card import DataCard, make_card
from rmsh.datacard.figure import plot_card

__all__ = ["DataCard", "make_card", "plot_card"]
