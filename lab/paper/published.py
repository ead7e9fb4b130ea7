"""What the paper prints: its methods and scores, and how our setting differs from its."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

COMPARED = ("cmfh", "uch", "seph", "dcmh", "tdh", "ssah", "svhn", "rmsh")  # in the order of the paper's Table 1
DIRECTION_TITLES = {"i2t": "I → T", "t2i": "T → I"}
DIRECTION_WORDS = {"i2t": "From image to text", "t2i": "From text to image"}
READING = "(reading)"  # in the title of a method whose code and text were not found

_TITLES = {
    "cmfh": "CMFH",
    "uch": "UCH",
    "seph": "SePH",
    "dcmh": "DCMH",
    "tdh": "TDH",
    "ssah": "SSAH",
    "svhn": "SVHN",
    "rmsh": "RMSH",
    "glint": "GLINT",
    "nest": "NEST",
    "scm": "SCM",
    "dsph": "DSPH",
    "twdh": "TwDH",
    "dhaph": "DHaPH",
    "mith": "MITH",
    "dchmt": "DCHMT",
    "dnph": "DNPH",
    "ucch": "UCCH",
    "dgcpn": "DGCPN",
    "cirh": "CIRH",
    "scbch": "SCBCH",
    "rotation": "random rotation",
    "cmdvh-reading": f"CMDVH {READING}",
    "egdh-reading": f"EGDH {READING}",
    "cca-itq": "CCA-ITQ",
    "classifier-itq": "classifier-ITQ",
    "cca-cosine": "no codes: CCA, cosine",
    "logistic": "no codes: logistic regression",
    "mlp": "no codes: MLP classifier",
}

# Our name of a data set -> the paper's.
_DATASETS = {"mirflickr25k": "MIRFLICKR25K", "nuswide": "NUS-WIDE", "mscoco": "MS COCO", "coco66k": "MS COCO"}
_ANY_DATASET = (
    "The paper does not say how it treats equal distances, nor which pairs it drew; here scores are expected values "
    "over the order of equal distances. Every method is our own implementation of its paper."
)
_DIFFERENCES = {
    "coco66k": (
        "coco66k is about 70 % of the paper's MS COCO: the database and training set have 56,947 pairs (the paper: "
        "82,783), and there are 4,956 queries (the same number). 66 % of the images show a person, so a random ranking "
        "scores 0.129 (0.086 on all of MS COCO). Image features are from EfficientNet-Lite0 (the paper: ResNet-152), "
        "text features from MiniLM (the paper: skip-thought vectors). Compare the order of the methods, not the "
        "scores."
    ),
    "mscoco": "The features may be from other encoders than the paper's ResNet-152 and skip-thought vectors.",
    "mirflickr25k": "The number of pairs left after cleaning differs slightly from the paper's 20,006.",
    "nuswide": "The 5,000 training pairs and 2,000 queries are a new random sample.",
}


def method_title(name: str) -> str:
    """A method as its paper writes it; an unknown method keeps its name.

    Example:
        >>> method_title("seph"), method_title("mine")
        ('SePH', 'mine')
    """
    return _TITLES.get(name, name)


def paper_score(table: int, dataset: str, *, direction: str, method: str, bits: int) -> float | None:
    """NDCG@500 as the paper prints it, None if it has no such number.

    Args:
        table: 1 (methods) or 2 (ablation).
        dataset: our name of the data set.
        direction: "i2t" or "t2i".
        method: as the paper writes it, such as "SePH" or "RMSH-T".
        bits: the code length.

    Example:
        >>> paper_score(1, "coco66k", direction="i2t", method="RMSH", bits=64)
        0.3855
    """
    return _printed().get((table, _DATASETS.get(dataset, ""), direction, method, bits))


@cache
def _printed() -> dict[tuple[int, str, str, str, int], float]:
    rows = pd.read_csv(Path(__file__).with_name("paper_scores.csv"), comment="#")
    return {tuple(key): score for *key, score in rows.itertuples(index=False)}


def setting_difference(dataset: str) -> str | None:
    """How our data and features differ from the paper's; None for data that is not in the paper."""
    return f"{_DIFFERENCES[dataset]} {_ANY_DATASET}" if dataset in _DIFFERENCES else None
