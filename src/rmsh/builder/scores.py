"""The scores of a build: what people will see when they search its library, measured on items that were held out.

- Recall: how often the text of an item finds its own image, and an image its own text, by codes.
- Words: how many of the first ten images have the label whose name is the query, in the ranking of a search.
- NDCG and mAP of held-out items that share labels, by codes.

A score near chance becomes a warning, with what can be done about it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.builder.source import LEAST_ITEMS, Source
from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import DIRECTIONS, BitArray, Direction, IdArray, IntArray, Modality, Store
from rmsh.data.splits import Split
from rmsh.features.bag_of_words import words_of
from rmsh.library import Item, Library
from rmsh.metrics import LabelledCodes, evaluate_directions
from rmsh.metrics.counterparts import Places, rank_codes, recall_at
from rmsh.metrics.directions import modalities
from rmsh.pipeline import codes_of
from rmsh.retrieval_set import default_query_count
from rmsh.search import Searcher

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

RANK = 50  # cut-off of NDCG and precision: as many hits as a person may look through
RECALL = (1, 10)  # ranks
RECALL_DIRECTIONS: tuple[Direction, ...] = ("t2i", "i2t")
LEAST_RANKED = 20  # pairs or images; a rank among fewer says little
FIRST_PAGE = 10  # images for the name of a label
_MOST_QUERIES = 1000
_MOST_CLASSES = 100


def hold_out(pairs: Pairs, *, seed: int, everything: bool = False) -> IdArray:
    """The ids of items to hold out from training: a tenth of the complete ones, at most 1,000; none of fewer than 30.

    If nothing is trained, ``everything`` is held out, at most 1,000.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> len(hold_out(generate_pairs(200), seed=0)), len(hold_out(generate_pairs(20), seed=0))
        (20, 0)
    """
    rows = np.flatnonzero(complete(pairs))
    count = default_query_count(len(rows)) if len(rows) >= LEAST_ITEMS else 0
    if everything:
        count = min(len(rows), _MOST_QUERIES)
    drawn = np.random.default_rng(seed).choice(rows, count, replace=False)
    held_out: IdArray = pairs.ids[np.sort(drawn)]
    return held_out


def complete(pairs: Pairs) -> BitArray:
    """(n,) which items have an image and a text."""
    return pairs.has_image & pairs.has_text


def split_by(pairs: Pairs, held_out: IdArray) -> Split:
    """Held-out items that are still complete are the queries; all other items are the training set and the database.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> split_by(generate_pairs(4), np.array(["item-2"])).train
        array([0, 1, 3])
    """
    held = np.isin(pairs.ids, held_out)
    rest = np.flatnonzero(~held)
    return Split("held-out", rest, np.flatnonzero(held & complete(pairs)), rest)


def score(model: Model, pairs: Pairs, split: Split, *, on_progress: OnProgress = ignore) -> dict[str, Any]:
    """Scores of the held-out items in all directions as plain values; empty if nothing can be scored.

    The database is the labelled part of the other items: an item without labels is relevant to no query.
    """
    if not pairs.labelled[split.query].any() or not pairs.labelled[split.database].any():
        return {}
    labels = np.asarray(pairs.labels)
    sides: list[dict[Modality, LabelledCodes]] = []
    for rows in (split.query, split.database):
        rows = rows[pairs.labelled[rows]]
        codes = codes_of(model, pairs, rows)
        sides.append({m: LabelledCodes(found, labels[rows[pairs.has(m)[rows]]]) for m, found in codes.items()})
    try:
        found = evaluate_directions(*sides, directions=DIRECTIONS, k=RANK, on_progress=on_progress)
    except DataError:  # no held-out item shares a label with any other item
        return {}
    return {direction: scores.to_json() for direction, scores in found.items()}


def recall_of(model: Model, pairs: Pairs, split: Split) -> dict[Direction, Any]:
    """How often held-out items find their own counterpart among at most 1,000 items, as plain values."""
    others = split.database[complete(pairs)[split.database]][: _MOST_QUERIES - len(split.query)]
    rows = np.concatenate([split.query, others])
    if not split.query.size or len(rows) < LEAST_RANKED:
        return {}
    codes = codes_of(model, pairs, rows)
    found: dict[Direction, Any] = {}
    for direction in RECALL_DIRECTIONS:
        query, other = modalities(direction)
        places = rank_codes(codes[query], codes[other])
        held_out = Places(*(ranks[: len(split.query)] for ranks in places))
        found[direction] = {"queries": len(split.query), "items": len(rows)} | {
            f"recall@{k}": {"value": float(recall_at(held_out, k).mean()), "chance": min(k / len(rows), 1.0)}
            for k in RECALL
        }
    return found


def word_precision(
    model: Model, source: Source, split: Split, *, store: Store, seed: int, work: Path
) -> dict[str, Any]:
    """How many of the first ten images have the label whose name is the query, as plain values; empty if too few.

    At most 1,000 labelled images that the model was not trained on are searched for at most 100 labels. They are ranked
    as in the library, with their texts, but without labels, and texts made of them, which would answer for themselves.
    ``work`` is the folder for a temporary library.
    """
    pairs, rng = source.pairs, np.random.default_rng(seed)
    rows = np.arange(len(pairs)) if source.learn_from == "nothing" else split.query
    rows = np.sort(rng.permutation(rows[(pairs.has_image & pairs.labelled)[rows]])[:_MOST_QUERIES])
    if len(rows) < LEAST_RANKED:
        return {}
    has = np.asarray(pairs.labels)[rows] != 0
    queries = [" ".join(words_of(name)) for name in pairs.class_names]
    judged = [label for label, query in enumerate(queries) if query and 0 < has[:, label].sum() < len(rows)]
    judged = np.sort(rng.permutation(judged)[:_MOST_CLASSES]).tolist()
    if not judged:
        return {}
    with tempfile.TemporaryDirectory(dir=work) as folder, Library.create(folder, model, store=store) as library:
        pages = _first_pages(library, source, rows, [queries[label] for label in judged])
    shares = [has[page, label].sum() / FIRST_PAGE for label, page in zip(judged, pages, strict=True)]
    counts = has[:, judged].sum(axis=0)
    chances = counts / len(rows)
    # Of ten images drawn without replacement.
    variances = chances * (1 - chances) / FIRST_PAGE * (len(rows) - FIRST_PAGE) / (len(rows) - 1)
    score = {
        "value": float(np.mean(shares)),
        "chance": float(chances.mean()),
        "best": float(np.minimum(counts / FIRST_PAGE, 1).mean()),
        "error": float(np.sqrt(variances.sum()) / len(judged)),  # standard error of chance
    }
    return {"queries": len(judged), "images": len(rows), f"precision@{FIRST_PAGE}": score}


def _first_pages(library: Library, source: Source, rows: IntArray, queries: list[str]) -> list[list[int]]:
    """Fill an empty library with the images of some rows; for each query, the places of the first ten in these rows."""
    model = library.model()
    codes = codes_of(model, source.pairs, rows, vectors=True)
    records = [source.origin.records[row] for row in rows.tolist()]
    if source.named:
        del codes["text"]
    items = [Item(record.id, text=None if source.named else record.text) for record in records]
    place_of = {item.id: place for place, item in enumerate(items)}
    library.add(items, codes, model=model.fingerprint)
    searcher = Searcher(library)
    pages = [searcher.search(searcher.text(query), FIRST_PAGE, to="image") for query in queries]
    return [[place_of[hit.item.id] for hit in page] for page in pages]


def is_near_chance(value: float, chance: float, *, error: float, best: float = 1.0) -> bool:
    """Whether a score is within three standard errors of chance, or its gain over chance is too small to be noticed.

    The gain is too small below chance itself, that is, a score below twice chance; where chance is high, below a
    quarter of the best possible gain. The best possible score is never near chance.

    Example:
        >>> [is_near_chance(value, 0.01, error=0.003) for value in (0.011, 0.019, 0.03)]
        [True, True, False]
        >>> [is_near_chance(value, 0.6, error=0.01) for value in (0.65, 0.75)]
        [True, False]
        >>> is_near_chance(0.5, 0.25, error=0.2)
        True
    """
    possible = best - chance
    return value < chance + max(min(3 * error, possible), min(chance, possible / 4))


def warn_of(recall: Mapping[Direction, Any], words: Mapping[str, Any], *, learned_from: int) -> str:
    """A warning if scores of the first page are near chance, with the remedy; "" if none is.

    ``learned_from`` is the number of items that the model was trained on in this build, 0 for the bundled model.
    """
    low = []
    for direction, found in recall.items():
        score, (by, to) = found[f"recall@{FIRST_PAGE}"], modalities(direction)
        error = float(np.sqrt(score["chance"] * (1 - score["chance"]) / found["queries"]))
        if is_near_chance(**score, error=error):
            low.append(
                f"{score['value']:.1%} of {found['queries']:,} {by}s find their {to} among the first {FIRST_PAGE} of "
                f"{found['items']:,} (chance {score['chance']:.1%})"
            )
    score = words.get(f"precision@{FIRST_PAGE}")
    if score and is_near_chance(**score):
        low.append(
            f"{score['value']:.1%} of the first {FIRST_PAGE} images for the name of a label have it (chance "
            f"{score['chance']:.1%})"
        )
    remedy = (
        f"Learn from more than {learned_from:,} items, with captions that say what an image shows, and labels whose "
        "names are words; or try the bundled model (--learn-from nothing)."
        if learned_from
        else "The bundled model does not seem to know what these images show or what these texts say; give "
        "more images captions or labels, to learn from them."
    )
    return f"Scores are near chance, so searches will find little: {'; '.join(low)}. {remedy}" if low else ""
