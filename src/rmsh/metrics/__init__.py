"""Metrics: scores of codes that do not depend on the order of ties, with bounds and chance levels.

A measure is a pure function of joint histograms: ``histogram.py`` counts them, ``ranking.py`` measures them, and
:func:`evaluate` does both in one pass.
"""

from __future__ import annotations

from rmsh.metrics.audit import audit_bits, audit_codes
from rmsh.metrics.directions import evaluate_directions
from rmsh.metrics.evaluate import Score, Scores, evaluate
from rmsh.metrics.histogram import LabelledCodes, histograms

__all__ = [
    "LabelledCodes",
    "Score",
    "Scores",
    "audit_bits",
    "audit_codes",
    "evaluate",
    "evaluate_directions",
    "histograms",
]
