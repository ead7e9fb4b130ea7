"""The paper's own numbers, and in which words our setting differs from its."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["difference_of_setting", "paper_score"]

# Our name of some data -> the paper's name of the data set.
_DATASETS = {
    "mirflickr25k": "MIRFLICKR25K",
    "nuswide": "NUS-WIDE",
    "mscoco": "MS COCO",
    "coco66k": "MS COCO",
}

_ANY = (
    "The paper does not say how it treats equal distances, nor which pairs it drew; here scores are expected values "
    "over the order of equal distances. Every method is written anew from its own paper."
)
_WORDS = {
    "coco66k": (
        "coco66k is three quarters of the paper's MS COCO: 56,947 pictures are searched and learned from (the paper "
        "has 82,783) and 4,956 ask (as many), and a person is on 66 % of them, so that a random ranking scores 0.129 "
        "(0.086 on all of MS COCO). Picture features are of EfficientNet-Lite0 (the paper: ResNet-152), text features "
        "of MiniLM (the paper: skip-thought vectors). Compare the order of the methods, not the numbers."
    ),
    "mscoco": "Features are those of the encoders at hand where they are not ResNet-152 and skip-thought vectors.",
    "mirflickr25k": "The pairs that are left after cleaning differ a little from the paper's 20,006.",
    "nuswide": "The 5,000 training pairs and 2,000 queries are drawn anew.",
}


@dataclass(frozen=True)
class _Place:
    """A cell of the paper's tables."""

    table: int
    dataset: str
    direction: str
    method: str
    bits: int


def paper_score(table: int, dataset: str, *, direction: str, method: str, bits: int) -> float | None:
    """NDCG@500 as the paper prints it, None where it has no such number.

    Args:
        table: 1 (methods) or 2 (ablation).
        dataset: our name of the data.
        direction: "i2t" or "t2i".
        method: as the paper writes it, such as "SePH" or "RMSH-T".
        bits: the length of a code.

    Example:
        >>> paper_score(1, "coco66k", direction="i2t", method="RMSH", bits=64)
        0.3855
    """
    return _printed().get(_Place(table, _DATASETS.get(dataset, ""), direction, method, bits))


@cache
def _printed() -> dict[_Place, float]:
    text = (files("lab.paper") / "paper_scores.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        _Place(int(row["table"]), row["dataset"], row["direction"], row["method"], int(row["bits"])): float(row["ndcg"])
        for row in rows
    }


def difference_of_setting(dataset: str) -> str | None:
    """How our data and features differ from the paper's, None for data the paper does not have."""
    return f"{_WORDS[dataset]} {_ANY}" if dataset in _WORDS else None
