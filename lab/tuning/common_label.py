"""What a very frequent label does to a method: training with all labels of coco66k, and without ``person``.

Two thirds of the pairs have this label. A loss that only knows whether two items share a label takes nearly half of all
pairs for similar; if it also pulls similar items together until they agree, nothing of their other labels is left.
Each method is trained with the best options of its trials, on as many pairs, and scored like a trial, always with all
labels: NDCG counts shared labels, mAP asks for one of them.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from lab.data import GRIDS, coco66k, write_measurement
from lab.tuning.trials import read_records, read_trials, runs_of, score
from rmsh.compare.measure import parts_of
from rmsh.compare.run import Run, method_of

LABEL = "person"
METHODS = ("dchmt", "dhaph", "dsph")


def main() -> None:
    """Train each method twice, write the scores and print them."""
    trials, records, rows = read_trials(GRIDS / "trials.yaml"), read_records(), list[dict[str, Any]]()
    opened, pairs = coco66k(trials.text), trials.most_pairs
    parts = parts_of(Run(trials.dataset, "", protocol="unseen", validation=True, train=pairs), opened)
    labels = np.asarray(parts.train.labels)
    others = np.where(np.array(parts.train.class_names) == LABEL, 0, labels)
    for method in METHODS:
        tried = [trial for trial in records[method]["tried"] if trial["pairs"] == pairs and "score" in trial]
        options = max(tried, key=lambda trial: trial["score"])["options"]
        runs = runs_of(trials, method, options, pairs)
        for name, given in (("all", labels), (f"without {LABEL}", others)):
            fitted = method_of(runs["paper"]).fit(replace(parts.train, labels=given))
            found = [
                (scores[ndcg]["value"], scores["map@all"]["value"])
                for _, ndcg, both in score(fitted, parts, runs)
                for scores in both["scores"].values()
            ]
            ndcg, precision = (round(fmean(values), 4) for values in zip(*found, strict=True))
            rows.append({"method": method, "labels": name, "ndcg": ndcg, "map": precision})
            print(rows[-1], flush=True)
    similar = {name: round(share_of_similar(each), 4) for name, each in (("all", labels), ("others", others))}
    share = round(float(labels[:, parts.train.class_names.index(LABEL)].mean()), 4)
    write_measurement("tuning/common_label", {"pairs": pairs, "share": share, "similar": similar, "rows": rows})


def share_of_similar(labels: np.ndarray[Any, Any]) -> float:
    """The share of ordered pairs of rows that have a label in common.

    Example:
        >>> share_of_similar(np.array([[1, 0], [1, 1], [0, 0]]))
        0.4444444444444444
    """
    given = np.asarray(labels, dtype=np.float32)
    return float(np.mean(given @ given.T > 0))
