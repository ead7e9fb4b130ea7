"""Where scores become weak: best hits of queries that the photographs answer, beside absent things and gibberish.

A twin of the model of the wheel, which has not seen the photographs, searches libraries of them: with images and
captions, with images alone and with captions alone. A cut-off is chosen on the ``dev`` queries and reported for the
others; a right page that is called weak costs twice as much as a wrong one that is not. The product uses the choice for
images alone. With captions it stays below the choice: those of the photographs describe them, as a user's may not. The
cost and this exception were settled after the scores of both halves had been seen, so ``test`` is no independent check.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.data import coco66k, coco66k_root, write_measurement
from lab.first_page.judged import Query, read_queries
from lab.first_page.rankings import read_captions
from lab.wheel_model import TWIN, photographs_of
from rmsh.library import Item, Library
from rmsh.model import load
from rmsh.pipeline import codes_of
from rmsh.search.scoring import WEAK, WEAK_ALONE, keywords
from rmsh.search.searcher import Searcher

if TYPE_CHECKING:
    from rmsh.core.types import Modality, ScoreArray
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

COST = 2.0  # of a right page that is called weak
LIBRARIES: dict[str, tuple[Modality, ...]] = {
    "images and captions": ("image", "text"),
    "images alone": ("image",),
    "captions alone": ("text",),
}


def main() -> None:
    """Measure all libraries, write lab/results/first_page/cut_off.json and print it."""
    photographs, captions = photographs_of(coco66k("minilm").pairs), read_captions(Path(coco66k_root()))
    model, rows = load(TWIN), []
    for name, modalities in LIBRARIES.items():
        kept: dict[str, Any] = {f"has_{m}": np.full(len(photographs), m in modalities) for m in ("image", "text")}
        with tempfile.TemporaryDirectory() as folder:
            _fill(Path(folder) / "library", model, replace(photographs, **kept), captions)
            with Searcher.open(Path(folder) / "library") as searcher:
                best = {
                    (part, answerable): best_scores(searcher, read_queries(part, answerable=answerable), modalities[0])
                    for part in ("dev", "test")
                    for answerable in (True, False)
                }
        used = WEAK if len(modalities) > 1 else WEAK_ALONE
        chosen = choose(best["dev", True], best["dev", False])
        for part in ("dev", "test"):
            counts = {
                f"{'answered' if answerable else 'unanswered'} {what}": value
                for answerable in (True, False)
                for what, value in (
                    ("queries", len(best[part, answerable])),
                    ("weak", int((best[part, answerable] < used).sum())),
                )
            }
            rows.append({"library": name, "part": part, "cut-off": used, "chosen on dev": chosen, **counts})
    what = "queries whose best hit has a score below the cut-off of the product, and the cut-off chosen on dev"
    write_measurement("first_page/cut_off", {"what": what, "model": model.fingerprint, "rows": rows})
    for row in rows:
        print("  ".join(f"{key}: {value}" for key, value in row.items()))


def _fill(folder: Path, model: Model, pairs: Pairs, captions: dict[str, str]) -> None:
    items = [Item(name, text=captions[name] if pairs.has_text.all() else None) for name in pairs.ids.tolist()]
    with Library.create(folder, model) as library:
        library.add(items, codes_of(model, pairs, vectors=True), model=model.fingerprint)


def best_scores(searcher: Searcher, queries: Sequence[Query], to: Modality) -> ScoreArray:
    """The best score of each query; infinite if the hit has all its words, for such a hit is never weak."""
    scores: list[Any] = []
    for query in queries:
        match = searcher.search(searcher.text(query.query), 1, to=to)[0].match
        if match is not None:
            words = keywords(query.query)
            scores.append(np.inf if words and len(match.words) == len(words) else match.score)
    return np.array(scores)


def choose(answered: ScoreArray, unanswered: ScoreArray) -> float:
    """The lowest cut-off, in steps of 0.1, at which most unanswered and fewest answered queries are weak.

    Example:
        >>> choose(np.array([5.0, 7.0, 8.0, 9.0]), np.array([3.0, 4.0, 6.0]))
        4.1
    """
    steps = np.arange(0, 150) / 10
    gains = [(unanswered < step).mean() - COST * (answered < step).mean() for step in steps]
    return float(steps[int(np.argmax(gains))])
