"""Scores of single queries survive a result file, but for a small rounding."""

from __future__ import annotations

import numpy as np

from rmsh.compare.result import pack_scores, unpack_scores


def test_packing_loses_less_than_a_step_and_keeps_dropped_queries() -> None:
    values = np.append(np.random.default_rng(0).random(500), np.nan)
    back = unpack_scores(pack_scores(values))
    assert np.isnan(back).tolist() == np.isnan(values).tolist()
    assert np.nanmax(np.abs(back - values)) <= 0.5 / 254 + 1e-12
