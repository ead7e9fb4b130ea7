"""The report of a build: one page that needs no other file, with scores beside chance and searches to look at.

A few searches in a new library, to be looked at: held-out items ask, and what they find is shown.

Which items a build keeps aside, and how well the model that never saw them lets them find the others.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import DIRECTIONS, MODALITIES
from rmsh.data.splits import Split
from rmsh.metrics import LabelledCodes, evaluate_directions
from rmsh.metrics.directions import modalities
from rmsh.retrieval_set import default_query_count

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, Direction, IdArray, IntArray, Modality
    from rmsh.data.pairs import Pairs
    from rmsh.library import Item, Library
    from rmsh.model import Model

# How many queries of each direction, and how many hits of each query.
_SHOWN: dict[Direction, tuple[int, int]] = {"t2i": (4, 5), "i2t": (3, 5), "i2i": (2, 5), "t2t": (2, 5)}


def example_searches(library: Library, ids: IdArray, *, seed: int) -> list[dict[str, Any]]:
    """Searches as plain values: direction, the item that asks, and its hits without itself.

    Args:
        library: to search.
        ids: items that may ask, which have a picture and a text.
        seed: which of them do follows from it.
    """
    drawn = np.random.default_rng(seed).permutation(ids).tolist()
    searches: list[dict[str, Any]] = []
    for direction, (count, hits) in _SHOWN.items():
        asking, drawn = drawn[:count], drawn[count:] + drawn[:count]
        searches += [_search(library, name, direction, hits) for name in asking]
    return searches


def _search(library: Library, name: str, direction: Direction, count: int) -> dict[str, Any]:
    by, to = modalities(direction)
    item, codes = library.get(name), library.codes([name], by)
    found = library.search(codes, count + 1, to=to, model=library.generation().fingerprint)[0] if len(codes) else []
    hits = [hit for hit in found if hit.item.id != name][:count]
    labels = set(item.labels) if item else set()
    return {
        "direction": direction,
        "query": _plain(item),
        "hits": [
            {**_plain(hit.item), "distance": hit.distance, "shared": sorted(labels & {*hit.item.labels})}
            for hit in hits
        ],
    }


def _plain(item: Item | None) -> dict[str, Any]:
    if item is None:
        return {}
    return {"id": item.id, "text": item.text, "picture": item.picture, "labels": list(item.labels)}


RANK = 50  # where NDCG and precision cut the ranking: what a person may look through
LEAST_ITEMS = 30  # with fewer complete items, every one is needed to learn from


def hold_out(pairs: Pairs, *, seed: int) -> IdArray:
    """The ids of the items to keep aside: a tenth of the complete ones, at most 1,000; none of fewer than thirty.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> len(hold_out(generate_pairs(200), seed=0)), len(hold_out(generate_pairs(20), seed=0))
        (20, 0)
    """
    rows = np.flatnonzero(complete(pairs))
    count = default_query_count(len(rows)) if len(rows) >= LEAST_ITEMS else 0
    drawn = np.random.default_rng(seed).choice(rows, count, replace=False)
    held: IdArray = pairs.ids[np.sort(drawn)]
    return held


def complete(pairs: Pairs) -> BitArray:
    """(n,) which items have all that is learned from: a picture, a text and a label."""
    return pairs.has_image & pairs.has_text & pairs.labelled


def split_by(pairs: Pairs, held_out: IdArray) -> Split:
    """The held-out items that are still complete ask; the items that were not held out are searched and learned from.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> split_by(generate_pairs(4), np.array(["item-2"])).train
        array([0, 1, 3])
    """
    held = np.isin(pairs.ids, held_out)
    rest = np.flatnonzero(~held)
    return Split("held-out", rest, np.flatnonzero(held & complete(pairs)), rest)


def score(model: Model, pairs: Pairs, split: Split, *, on_progress: OnProgress = ignore) -> dict[str, Any]:
    """Scores of the held-out items in all directions as plain values; empty where none are held out.

    The database is the other items that have labels; an item without labels is relevant to nothing and is left out.
    """
    if not split.query.size:
        return {}
    labelled = np.flatnonzero(pairs.labelled)
    sides = [_side(model, pairs, np.intersect1d(rows, labelled)) for rows in (split.query, split.database)]
    try:
        found = evaluate_directions(*sides, directions=DIRECTIONS, k=RANK, on_progress=on_progress)
    except DataError:  # no held-out item shares a label with any other item
        return {}
    return {direction: scores.to_json() for direction, scores in found.items()}


def _side(model: Model, pairs: Pairs, rows: IntArray) -> dict[Modality, LabelledCodes]:
    side: dict[Modality, LabelledCodes] = {}
    for modality in MODALITIES:
        present = rows[pairs.has(modality)[rows]]
        codes = model.encode(pairs.features(modality)[present], modality, ids=pairs.ids[present])
        side[modality] = LabelledCodes(codes, np.asarray(pairs.labels)[present])
    return side


DIRECTION_WORDS = {
    "t2i": "Words find pictures",
    "i2t": "Pictures find texts",
    "i2i": "Pictures find pictures",
    "t2t": "Words find texts",
}
_SIDE = 144  # pixels of a thumbnail

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

Picture: TypeAlias = Callable[[str], Path | None]  # the picture of an item to its file


def render_report(value: Mapping[str, Any], *, picture: Picture) -> str:
    """The page of a report.

    Args:
        value: what ``report.json`` holds.
        picture: where a picture of an item is.
    """
    parts = [
        f"<h1>{escape(value['name'])}</h1>",
        f"<p>{escape(_summary(value))}</p>",
        f"<p class=muted>{escape(about_delta(value['delta'], value['bits']))}</p>",
        *_scores(value),
        *_searches(value["searches"], picture),
        *_left_out(value["skipped"]),
        f"<p class=muted>{escape(value['credit'])}</p>" if value["credit"] else "",
        *_stages(value["seconds"]),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(value['name'])}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _summary(value: Mapping[str, Any]) -> str:
    counts = value["counts"]
    return (
        f"{counts['items']:,} items, {counts['pictures']:,} with a picture, {counts['texts']:,} with a text, "
        f"{counts['labelled']:,} with one or more of {counts['classes']:,} labels. Codes of {value['bits']} bits by "
        f"the model {value['model']}."
    )


def about_delta(chosen: Mapping[str, Any], bits: int) -> str:
    """Which delta was chosen and why, in a sentence.

    Example:
        >>> about_delta({"asked": True, "delta": 5, "reason": "it was given."}, 64)
        'Items that share no label are to differ in delta = 5 of 64 bits: it was given.'
    """
    are = "are to" if chosen["asked"] else "could by the bounds"
    return f"Items that share no label {are} differ in delta = {chosen['delta']} of {bits} bits: {chosen['reason']}"


def _scores(value: Mapping[str, Any]) -> list[str]:
    heading = "<h2>How well it finds</h2>"
    if not value["scores"]:
        return [heading, f"<p>{escape(value['no_scores'])}</p>"]
    first = next(iter(value["scores"].values()))
    k = first["settings"]["k"]
    names = {"ndcg": f"NDCG@{k}", "precision": f"P@{k}", "map": "mAP"}
    head = "".join(f"<th>{name}<th class=chance>chance" for name in names.values())
    rows = "".join(
        f"<tr><td>{DIRECTION_WORDS[direction]}"
        + "".join(f"<td>{scores[n]['value']:.3f}<td class=chance>{scores[n]['chance']:.3f}" for n in names)
        for direction, scores in value["scores"].items()
    )
    return [
        heading,
        f"<table><thead><tr><th>{head}</thead><tbody>{rows}</tbody></table>",
        f"<p class=muted>{first['queries']:,} items were kept aside while learning and ask here; {first['database']:,} "
        "others are searched. An item is a good hit where it shares a label, the better the more labels it shares. "
        "Chance is what a random order would score. The library holds all items, these too.</p>",
    ]


def _searches(searches: Sequence[Mapping[str, Any]], picture: Picture) -> list[str]:
    parts: list[str] = []
    shown = ""
    for search in searches:
        if search["direction"] != shown:
            shown = str(search["direction"])
            parts.append(f"<h2>{DIRECTION_WORDS[shown]}</h2>")
        asks, finds = shown[0] == "i", shown[2] == "i"
        query = search["query"]
        body = _image(query, picture) if asks else f"“{escape(query['text'] or '')}”"
        hits = "".join(_hit(hit, picture, finds) for hit in search["hits"])
        labels = escape(", ".join(query["labels"]))
        parts.append(
            f"<div class=search><div class=query>{body}<div class=muted>{labels}</div></div>"
            f'<ol class="hits{"" if finds else " texts"}">{hits}</ol></div>'
        )
    return parts


def _hit(hit: Mapping[str, Any], picture: Picture, as_picture: bool) -> str:
    body = _image(hit, picture) if as_picture else escape(hit["text"] or "")
    shared = f" <span class=shared>✓ {escape(', '.join(hit['shared']))}</span>" if hit["shared"] else ""
    return f'<li>{body} <span class="bits muted">{hit["distance"]} bits</span>{shared}</li>'


def _image(item: Mapping[str, Any], picture: Picture) -> str:
    source = None if item["picture"] is None else thumbnail(picture(item["picture"]))
    words = escape(item["text"] or item["id"], quote=True)
    return f'<img src="{source}" alt="{words}" title="{words}">' if source else f"<em>{words}</em>"


def thumbnail(path: Path | None) -> str | None:
    """A picture as a small JPEG in a data address, or None where it cannot be read."""
    from rmsh.features import images

    if path is None:
        return None
    try:
        small = images.thumbnail(path, _SIDE * 2)  # twice the size, for screens of high resolution
    except DataError:
        return None
    return "data:image/jpeg;base64," + base64.b64encode(small).decode()


def _left_out(skipped: Mapping[str, Any]) -> list[str]:
    if not skipped["count"]:
        return []
    listed = "".join(f"<li>{escape(sentence)}" for sentence in skipped["examples"])
    return [f"<h2>Left out</h2><ul>{listed}</ul><p class=muted>skipped.csv lists all {skipped['count']:,}.</p>"]


def _stages(seconds: Mapping[str, float]) -> list[str]:
    listed = ", ".join(f"{escape(name)} {value:.1f} s" for name, value in seconds.items())
    return [f"<p class=muted>Time: {listed}.</p>"]
