"""Metrics: scores of codes that do not depend on the order of equal distances, with bounds and chance levels.

All are pure functions of joint histograms (see ``histogram.py``); :func:`evaluate` computes all in one pass.
"""

from __future__ import annotations

from rmsh.metrics.audit import audit, audit_bits
from rmsh.metrics.average_precision import NORMALISERS, average_precision, average_precision_bounds
from rmsh.metrics.directions import evaluate_directions
from rmsh.metrics.histogram import histograms
from rmsh.metrics.labelled import LabelledCodes
from rmsh.metrics.ranking import ndcg, ndcg_bounds, precision_at, precision_at_bounds, precision_within
from rmsh.metrics.relevance import random_ranking
from rmsh.metrics.report import evaluate
from rmsh.metrics.scores import PerQuery, Score, Scores

__all__ = [
    "NORMALISERS",
    "LabelledCodes",
    "PerQuery",
    "Score",
    "Scores",
    "audit",
    "audit_bits",
    "average_precision",
    "average_precision_bounds",
    "evaluate",
    "evaluate_directions",
    "histograms",
    "ndcg",
    "ndcg_bounds",
    "precision_at",
    "precision_at_bounds",
    "precision_within",
    "random_ranking",
]
