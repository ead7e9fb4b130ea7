"""Where scores become weak: best hits of queries that the photographs answer, beside absent things and gibberish.

A twin of the bundled model, which has not seen the photographs, searches libraries of them: with images and captions,
with images alone and with captions alone. A cut-off is chosen on the ``dev`` queries and reported for the others; a
right page that is called weak costs twice as much as a wrong one that is not. The product uses the choice for images
alone. With captions it stays below the choice: those of the photographs describe them, as a user's may not. The cost
and this exception were settled after the scores of dev and test had been seen; the ``fresh`` queries were written
afterwards and serve for nothing but this count.

In smaller libraries the best unrelated item is farther, and so is the cut-off. Random photographs make such libraries
of images alone; a query counts as answered if one of its right photographs is among them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.data import coco66k, coco66k_root, write_measurement
from lab.first_page.judged import FOLDER, Query, read_judgements, read_queries
from lab.first_page.library import fill, twin
from lab.first_page.rankings import read_captions
from rmsh.search.scoring import keywords, weak_below
from rmsh.search.searcher import Searcher

if TYPE_CHECKING:
    from rmsh.core.types import Modality, ScoreArray
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

FRESH = FOLDER / "fresh_queries.json"
PARTS = ("dev", "test", "fresh")
COST = 2.0  # of a right page that is called weak
SIZES, DRAWS = (100, 300, 1000), 5  # of small libraries
LIBRARIES: dict[str, tuple[Modality, ...]] = {
    "images and captions": ("image", "text"),
    "images alone": ("image",),
    "captions alone": ("text",),
}


def main(out: Annotated[Path, typer.Argument(help="Folder with the twin; it is trained if missing.")]) -> None:
    """Measure all libraries, write lab/results/first_page/cut_off.json and print it."""
    pairs, captions = coco66k("minilm").pairs, read_captions(Path(coco66k_root()))
    inside = np.array([name in captions for name in pairs.ids.tolist()])
    model, photographs = twin(np.flatnonzero(~inside), out), pairs.take(np.flatnonzero(inside))
    rows = []
    for name, modalities in LIBRARIES.items():
        kept: dict[str, Any] = {f"has_{m}": np.full(len(photographs), m in modalities) for m in ("image", "text")}
        with tempfile.TemporaryDirectory() as folder:
            fill(
                Path(folder) / "library",
                model,
                replace(photographs, **kept),
                captions if kept["has_text"].all() else {},
            )
            with Searcher.open(Path(folder) / "library") as searcher:
                best = {
                    (part, answerable): best_scores(searcher, queries_of(part, answerable=answerable), modalities[0])
                    for part in PARTS
                    for answerable in (True, False)
                }
        used = round(weak_below(len(photographs), alone=len(modalities) < 2), 2)
        chosen = choose(best["dev", True], best["dev", False])
        rows += [
            {"library": name, "part": part, "cut-off": used, "chosen on dev": chosen, **counts(best, part, used)}
            for part in PARTS
        ]
    sizes = [by_size(model, photographs, items) for items in SIZES]
    what = "queries whose best hit has a score below the cut-off of the product, and the cut-off chosen on dev"
    write_measurement("first_page/cut_off", {"what": what, "model": model.fingerprint, "rows": rows, "sizes": sizes})
    for row in [*rows, *sizes]:
        print("  ".join(f"{key}: {value}" for key, value in row.items()))


def by_size(model: Model, photographs: Pairs, items: int) -> dict[str, Any]:
    """Counts of weak queries in libraries of so many photographs, images alone, over all queries but the fresh ones."""
    chance, judgements, cut = np.random.default_rng(0), read_judgements(), weak_below(items, alone=True)
    answered, unanswered = list[Any](), list[Any]()
    for _ in range(DRAWS):
        drawn = photographs.take(np.sort(chance.permutation(len(photographs))[:items]))
        drawn = replace(drawn, has_text=np.zeros(items, np.bool_))
        inside = set(drawn.ids.tolist())
        shown = [
            query
            for query in read_queries()
            if any(grade == 2 and name in inside for name, grade in judgements[query.query].items())
        ]
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder) / "library", model, drawn, {})
            with Searcher.open(Path(folder) / "library") as searcher:
                answered.append(best_scores(searcher, shown, "image"))
                unanswered.append(best_scores(searcher, read_queries(answerable=False), "image"))
    best = {("all", True): np.concatenate(answered), ("all", False): np.concatenate(unanswered)}
    return {"items": items, "draws": DRAWS, "cut-off": round(cut, 2), **counts(best, "all", cut)}


def queries_of(part: str, *, answerable: bool) -> list[Query]:
    """Queries of the judged set, or the fresh ones."""
    if part == "fresh":
        return read_queries(answerable=answerable, path=FRESH)
    return read_queries(part, answerable=answerable)


def counts(best: Mapping[tuple[str, bool], ScoreArray], part: str, used: float) -> dict[str, int]:
    """How many queries of a part have an answer or none, and how many of them are weak.

    Example:
        >>> counts({("dev", True): np.array([7.0]), ("dev", False): np.array([1.0, 8.0])}, "dev", 5.5)
        {'answered queries': 1, 'answered weak': 0, 'unanswered queries': 2, 'unanswered weak': 1}
    """
    found = dict[str, int]()
    for kind, answerable in (("answered", True), ("unanswered", False)):
        scores = best[part, answerable]
        found |= {f"{kind} queries": len(scores), f"{kind} weak": int((scores < used).sum())}
    return found


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
