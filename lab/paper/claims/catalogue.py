"""All claims of the paper, in its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.paper.claims.methods import check_best, check_order
from lab.paper.claims.parts import check_ablation
from lab.paper.claims.sweeps import check_delta, check_weights
from lab.paper.lineup import line_up
from lab.paper.outcomes import MAP, NDCG, Outcome

if TYPE_CHECKING:
    from lab.paper.claims.claim import Claim

__all__ = ["check_claims"]


def check_claims(outcomes: Sequence[Outcome], dataset: str) -> list[Claim]:
    """What became of each claim on some data; one without its runs is open."""
    lineup = line_up(outcomes, dataset)
    return [
        check_best(lineup, NDCG, "RMSH is the best of the eight methods (NDCG@500)."),
        check_best(lineup, MAP, "Precision and recall agree with NDCG: RMSH is the best by mAP as well."),
        check_order(lineup),
        check_delta(outcomes, dataset),
        check_ablation(outcomes, dataset),
        check_weights(outcomes, dataset),
    ]
