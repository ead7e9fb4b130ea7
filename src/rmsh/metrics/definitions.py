"""Which measures an evaluation computes, and their definitions in words, stored in every result."""

from __future__ import annotations

from pydantic import Field

from rmsh.config import Config
from rmsh.metrics.average_precision import Normaliser  # noqa: TC001  # pydantic reads it when the class is made

__all__ = ["Definitions"]


class Definitions(Config):
    """What is measured.

    Example:
        >>> Definitions(map_k=50).names()["map"]
        'mAP@50'
    """

    k: int = Field(default=500, ge=1)  # where NDCG and precision cut the ranking
    map_k: int | None = Field(default=None, ge=1)  # where mAP cuts it; None ranks the whole database
    map_normaliser: Normaliser = "relevant"  # what divides the sum of precisions, see average_precision.py
    radius: int = Field(default=2, ge=0)  # of "precision within"

    def names(self) -> dict[str, str]:
        """A short name for each score, as a table shows it."""
        return {
            "ndcg": f"NDCG@{self.k}",
            "map": f"mAP@{self.map_k or 'all'}",
            "precision": f"P@{self.k}",
            "within": f"P(d<={self.radius})",
        }

    def describe(self) -> dict[str, str]:
        """Each definition as a sentence."""
        cut = "the whole ranking" if self.map_k is None else f"the first {self.map_k} items"
        return {
            "relevance": "two items are relevant to each other where they share at least one label",
            "ndcg": f"NDCG@{self.k}: gain 2^r - 1 for r shared labels, discount 1 / log2(1 + rank), ideal ranking of "
            "the whole database, mean over queries of the ratio",
            "map": f"mean over queries of the sum of precisions at relevant items in {cut}, divided by "
            f"{self.map_normaliser}",
            "precision": f"share of relevant items among the first {self.k}",
            "within": f"share of relevant items within Hamming distance {self.radius}; a query that finds nothing "
            "there counts 0",
            "ties": "expected value over all orders of items at equal distance; bounds are the worst and best order",
            "chance": "expected value for a random ranking; for precision within a radius, the share of relevant items "
            "in the database",
            "dropped": "queries without a relevant item in the database are left out of every mean",
            "curves": "macro: precision and recall of each query, then the mean over queries; by radius, and expected "
            "by rank",
        }
