"""Scores of single queries as a short text, so that a result file can hold them: a byte a query.

Two methods asked the same queries; a test of their difference query by query says more than two means.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rmsh.types import ScoreArray

__all__ = ["pack_scores", "unpack_scores"]

_STEPS, _DROPPED = 254, 255


def pack_scores(values: ScoreArray) -> str:
    """Scores (Q,) between 0 and 1 in steps of 1/254, NaN for a dropped query, as base64.

    Example:
        >>> unpack_scores(pack_scores(np.array([0.0, 0.5, 1.0, np.nan])))
        array([0. , 0.5, 1. , nan])
    """
    steps = np.where(np.isnan(values), _DROPPED, np.round(np.nan_to_num(values) * _STEPS))
    return base64.b64encode(steps.astype(np.uint8).tobytes()).decode()


def unpack_scores(text: str) -> ScoreArray:
    """Undo :func:`pack_scores`, but for the rounding."""
    steps = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.where(steps == _DROPPED, np.nan, steps / _STEPS)
