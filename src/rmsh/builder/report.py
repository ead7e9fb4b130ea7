"""The report of a build: scores of held-out items compared with chance, example searches, and a self-contained page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.builder.source import LEAST_ITEMS
from rmsh.core.errors import DataError, FormatError
from rmsh.core.files import read_json
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import DIRECTIONS
from rmsh.data.splits import Split
from rmsh.features.images import thumbnail
from rmsh.library.folder import MANIFEST
from rmsh.metrics import LabelledCodes, evaluate_directions
from rmsh.metrics.counterparts import Places, rank_codes, recall_at
from rmsh.metrics.directions import modalities
from rmsh.pipeline import codes_of
from rmsh.retrieval_set import default_query_count

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, Direction, IdArray, Modality
    from rmsh.data.pairs import Pairs
    from rmsh.library import Item, Library
    from rmsh.model import Model

REPORT = "report.json"
RANK = 50  # cut-off of NDCG and precision: as many hits as a person may look through
_MOST_QUERIES = 1000
DIRECTION_NAMES = {"t2i": "Text to image", "i2t": "Image to text", "i2i": "Image to image", "t2t": "Text to text"}
RECALL = (1, 10)  # ranks
RECALL_DIRECTIONS: tuple[Direction, ...] = ("t2i", "i2t")
LEAST_RANKED = 20  # pairs; a rank among fewer says little
_SHOWN: dict[Direction, int] = {"t2i": 4, "i2t": 3, "i2i": 2, "t2t": 2}  # example queries
_HITS = 5  # of each example query
_SIDE = 144  # pixels of a thumbnail on the page


def read_report(folder: Path) -> dict[str, Any] | None:
    """The report of a library; None if it is unfinished, or was not made by a build."""
    try:
        report = read_json(folder / REPORT)
        return report if (folder / MANIFEST).is_file() and "key" in report else None
    except (OSError, FormatError, TypeError):
        return None


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


def recall_of(model: Model, pairs: Pairs, split: Split) -> dict[str, Any]:
    """How often held-out items find their own counterpart among at most 1,000 items, as plain values."""
    others = split.database[complete(pairs)[split.database]][: _MOST_QUERIES - len(split.query)]
    rows = np.concatenate([split.query, others])
    if not split.query.size or len(rows) < LEAST_RANKED:
        return {}
    codes = codes_of(model, pairs, rows)
    found: dict[str, Any] = {}
    for direction in RECALL_DIRECTIONS:
        query, other = modalities(direction)
        places = rank_codes(codes[query], codes[other])
        held_out = Places(*(ranks[: len(split.query)] for ranks in places))
        found[direction] = {"queries": len(split.query), "items": len(rows)} | {
            f"recall@{k}": {"value": float(recall_at(held_out, k).mean()), "chance": min(k / len(rows), 1.0)}
            for k in RECALL
        }
    return found


def example_searches(library: Library, ids: IdArray, *, seed: int) -> list[dict[str, Any]]:
    """Searches as plain values (direction, query, hits), with queries drawn from some items with image and text."""
    drawn = np.random.default_rng(seed).permutation(ids).tolist()
    searches: list[dict[str, Any]] = []
    for direction, count in _SHOWN.items():
        queries, drawn = drawn[:count], drawn[count:] + drawn[:count]
        items = (library.get(name) for name in queries)
        searches += [_search(library, item, direction) for item in items if item is not None]
    return searches


def _search(library: Library, item: Item, direction: Direction) -> dict[str, Any]:
    by, to = modalities(direction)
    codes = library.codes([item.id], by)
    found = library.search(codes, _HITS + 1, to=to, model=library.generation().fingerprint)[0] if len(codes) else []
    hits = [
        {**_plain(hit.item), "distance": hit.distance, "shared": sorted({*item.labels} & {*hit.item.labels})}
        for hit in found
        if hit.item.id != item.id
    ]
    return {"direction": direction, "query": _plain(item), "hits": hits[:_HITS]}


def _plain(item: Item) -> dict[str, Any]:
    return {"id": item.id, "text": item.text, "picture": item.picture, "labels": list(item.labels)}


_STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); --good: #1a7f4b; }
@media (prefers-color-scheme: dark) { :root { --good: #5fd39a; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; } th, td { padding: .3rem .9rem .3rem 0; text-align: right; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 1px solid var(--line); }
.muted, .chance { opacity: .65; } .chance { font-size: .85em; }
.search { display: flex; gap: 1rem; padding: .8rem 0; border-top: 1px solid var(--line); align-items: flex-start; }
.query { flex: 0 0 11rem; } .hits { display: flex; flex-wrap: wrap; gap: .8rem; margin: 0; padding: 0; }
.hits li { list-style: none; width: 9rem; font-size: .85rem; overflow-wrap: anywhere; }
.hits.texts { flex-direction: column; gap: .35rem; } .hits.texts li { width: auto; }
img { max-width: 9rem; max-height: 9rem; border-radius: .3rem; display: block; }
.shared { color: var(--good); } .bits { font-variant-numeric: tabular-nums; }
@media (max-width: 40rem) { .search { flex-direction: column; } }
"""


def render_report(report: Mapping[str, Any], *, images: Path) -> str:
    """The report as an HTML page that needs no other file; ``images`` is the folder of the images."""
    counts, skipped = report["counts"], report["skipped"]
    seconds = ", ".join(f"{escape(name)} {value:.1f} s" for name, value in report["seconds"].items())
    sections = [
        f"<h1>{escape(report['name'])}</h1>",
        f"<p>{counts['items']:,} items: {counts['pictures']:,} with an image, {counts['texts']:,} with a text, "
        f"{counts['labelled']:,} with labels ({counts['classes']:,} classes). Codes have {report['bits']} bits; model "
        f"{escape(report['model'])}.</p>",
        f"<p class=muted>{escape(describe_delta(report['delta'], report['bits']))}</p>" if report["delta"] else "",
        "<h2>Retrieval quality</h2>",
        _recall_table(report["recall"]) if report["recall"] else "",
        _score_table(report["scores"]) if report["scores"] else "",
        f"<p>{escape(report['no_scores'])}</p>" if report["no_scores"] else "",
    ]
    for direction, name in DIRECTION_NAMES.items():
        searches = [
            _search_section(search, images) for search in report["searches"] if search["direction"] == direction
        ]
        sections += [f"<h2>{name}</h2>", *searches] if searches else []
    if skipped["count"]:
        listed = "".join(f"<li>{escape(sentence)}" for sentence in skipped["examples"])
        more = f"<p class=muted>skipped.csv lists all {skipped['count']:,}.</p>"
        sections.append(f"<h2>Skipped</h2><ul>{listed}</ul>{more}")
    if report["credit"]:
        sections.append(f"<p class=muted>{escape(report['credit'])}</p>")
    sections.append(f"<p class=muted>Time: {seconds}.</p>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(report['name'])}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )


def describe_delta(chosen: Mapping[str, Any], bits: int) -> str:
    """Which delta was chosen and why, in a sentence.

    Example:
        >>> describe_delta({"asked": True, "delta": 5, "reason": "set by the user."}, 64)
        'Items without a common label should differ in delta = 5 of 64 bits: set by the user.'
    """
    verb = "should" if chosen["asked"] else "could, by the bounds,"
    return f"Items without a common label {verb} differ in delta = {chosen['delta']} of {bits} bits: {chosen['reason']}"


def _recall_table(recall: Mapping[str, Any]) -> str:
    head = "".join(f"<th>own item among the first {k}<th class=chance>chance" for k in RECALL)
    rows = "".join(
        f"<tr><td>{DIRECTION_NAMES[direction]}"
        + "".join(
            f"<td>{found[f'recall@{k}']['value']:.3f}<td class=chance>{found[f'recall@{k}']['chance']:.3f}"
            for k in RECALL
        )
        for direction, found in recall.items()
    )
    first = next(iter(recall.values()))
    return (
        f"<table><thead><tr><th>{head}</thead><tbody>{rows}</tbody></table>\n"
        f"<p class=muted>How often the text of an item finds its own image, and an image its own text, among "
        f"{first['items']:,} items; {first['queries']:,} items that the model was not trained on are the queries.</p>"
    )


def _score_table(scores: Mapping[str, Any]) -> str:
    first = next(iter(scores.values()))
    k = first["settings"]["k"]
    names = {"ndcg": f"NDCG@{k}", "precision": f"P@{k}", "map": "mAP"}
    head = "".join(f"<th>{name}<th class=chance>chance" for name in names.values())
    rows = "".join(
        f"<tr><td>{DIRECTION_NAMES[direction]}"
        + "".join(f"<td>{found[n]['value']:.3f}<td class=chance>{found[n]['chance']:.3f}" for n in names)
        for direction, found in scores.items()
    )
    return (
        f"<table><thead><tr><th>{head}</thead><tbody>{rows}</tbody></table>\n"
        f"<p class=muted>{first['queries']:,} items were held out from training and serve as queries; the database is "
        f"{first['database']:,} other items. A hit is relevant if it shares a label with the query; the more labels, "
        "the better. Chance is the score of a random order. The library contains all items, including the held-out "
        "ones.</p>"
    )


def _search_section(search: Mapping[str, Any], images: Path) -> str:
    query, by, to = search["query"], *modalities(search["direction"])
    shown = _image(query, images) if by == "image" else f"“{escape(query['text'] or '')}”"
    hits = ""
    for hit in search["hits"]:
        body = _image(hit, images) if to == "image" else escape(hit["text"] or "")
        shared = f" <span class=shared>✓ {escape(', '.join(hit['shared']))}</span>" if hit["shared"] else ""
        hits += f'<li>{body} <span class="bits muted">{hit["distance"]} bits</span>{shared}</li>'
    return (
        f"<div class=search><div class=query>{shown}"
        f"<div class=muted>{escape(', '.join(query['labels']))}</div></div>"
        f'<ol class="hits{"" if to == "image" else " texts"}">{hits}</ol></div>'
    )


def _image(item: Mapping[str, Any], images: Path) -> str:
    address = None if item["picture"] is None else data_address(images / item["picture"])
    text = escape(item["text"] or item["id"], quote=True)
    return f'<img src="{address}" alt="{text}" title="{text}">' if address else f"<em>{text}</em>"


def data_address(path: Path) -> str | None:
    """A thumbnail as a data URL, or None if the image cannot be read."""
    try:
        small = thumbnail(path, 2 * _SIDE)  # for screens of high resolution
    except DataError:
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(small).decode()}"
