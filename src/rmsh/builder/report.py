"""The report of a build: scores next to chance, example searches, and a self-contained page."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.builder.scores import FIRST_PAGE, RECALL
from rmsh.core.errors import DataError
from rmsh.core.types import Direction, IdArray
from rmsh.features.images import thumbnail
from rmsh.metrics.directions import modalities

if TYPE_CHECKING:
    from rmsh.library import Item, Library

DIRECTION_NAMES = {"t2i": "Text to image", "i2t": "Image to text", "i2i": "Image to image", "t2t": "Text to text"}
_SHOWN: dict[Direction, int] = {"t2i": 4, "i2t": 3, "i2i": 2, "t2t": 2}  # example queries
_HITS = 5  # of each example query
_SIDE = 144  # pixels of a thumbnail on the page
_ABOUT_SCORES = (
    "The queries were held out from training; the library contains them too. With labels, a hit is relevant if it "
    "shares one with the query; the more labels, the better. Chance is the score of a random order."
)


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


def render_report(report: Mapping[str, Any], *, images: Path) -> str:
    """The report as an HTML page that needs no other file; ``images`` is the folder of the images."""
    counts, skipped = report["counts"], report["skipped"]
    seconds = ", ".join(f"{escape(name)} {value:.1f} s" for name, value in report["seconds"].items())
    sections = [
        f"<h1>{escape(report['name'])}</h1>",
        f"<p class=warning role=note>{escape(report['warning'])}</p>" if report["warning"] else "",
        f"<p>{counts['items']:,} items: {counts['pictures']:,} with an image, {counts['texts']:,} with a text, "
        f"{counts['labelled']:,} with labels ({counts['classes']:,} classes). Codes have {report['bits']} bits; model "
        f"{escape(report['model'])}. {escape(describe_size(report['bytes_per_item']))}</p>",
        f"<p class=muted>{escape(describe_delta(report['delta'], report['bits']))}</p>" if report["delta"] else "",
        "<h2>Retrieval quality</h2>",
        *(_html_table(*table) for table in score_tables(report)),
        f"<p>{escape(describe_words(report['words']))}</p>" if report["words"] else "",
        f"<p class=muted>{_ABOUT_SCORES}</p>" if report["scores"] or report["recall"] else "",
        f"<p>{escape(report['no_scores'])}</p>" if report["no_scores"] else "",
    ]
    for direction, name in DIRECTION_NAMES.items():
        searches = [_search_section(one, images) for one in report["searches"] if one["direction"] == direction]
        sections += [f"<h2>{name}</h2>", *searches] if searches else []
    if skipped["count"]:
        listed = "".join(f"<li>{escape(sentence)}" for sentence in skipped["examples"])
        more = f"<p class=muted>skipped.csv lists all {skipped['count']:,}.</p>"
        sections.append(f"<h2>Skipped</h2><ul>{listed}</ul>{more}")
    if report["credit"]:
        sections.append(f"<p class=muted>{escape(report['credit'])}</p>")
    sections.append(f"<p class=muted>Time: {seconds}.</p>")
    page = Template((resources.files("rmsh.builder") / "report.html").read_text(encoding="utf-8"))
    return page.substitute(title=escape(report["name"]), sections="\n".join(sections))


def describe_delta(chosen: Mapping[str, Any], bits: int) -> str:
    """Which delta was chosen and why, in a sentence.

    Example:
        >>> describe_delta({"asked": True, "delta": 5, "reason": "set by the user."}, 64)
        'Items without a common label should differ in delta = 5 of 64 bits: set by the user.'
    """
    verb = "should" if chosen["asked"] else "could, by the bounds,"
    return f"Items without a common label {verb} differ in delta = {chosen['delta']} of {bits} bits: {chosen['reason']}"


def score_tables(report: Mapping[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, headings and rows of the scores of a report, one row per direction; each score is followed by chance."""
    tables = []
    if report["recall"]:
        first = next(iter(report["recall"].values()))
        title = f"{first['queries']:,} items not trained on find their own counterpart among {first['items']:,}"
        tables.append((title, *_with_chance(report["recall"], {f"recall@{k}": f"recall@{k}" for k in RECALL})))
    if report["scores"]:
        first = next(iter(report["scores"].values()))
        k = first["settings"]["k"]
        title = f"{first['queries']:,} held-out items find items with a common label among {first['database']:,} others"
        names = {"ndcg": f"NDCG@{k}", "precision": f"P@{k}", "map": "mAP"}
        tables.append((title, *_with_chance(report["scores"], names)))
    return tables


def _with_chance(scores: Mapping[str, Any], names: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
    headings = ["", *(heading for name in names.values() for heading in (name, "chance"))]
    rows = [
        [DIRECTION_NAMES[d], *(f"{found[name][kind]:.3f}" for name in names for kind in ("value", "chance"))]
        for d, found in scores.items()
    ]
    return headings, rows


def _html_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    marks = [" class=chance" if heading == "chance" else "" for heading in headings]
    head, *body = (
        "".join(f"<{tag}{mark}>{cell}" for mark, cell in zip(marks, cells, strict=True))
        for tag, cells in [("th", ["Direction", *headings[1:]]), *(("td", row) for row in rows)]
    )
    lines = "".join(f"<tr>{row}" for row in body)
    table = f"<table><caption>{title}</caption><thead><tr>{head}</thead><tbody>{lines}</tbody></table>"
    return f'<div class=scores tabindex=0 role=region aria-label="{title}">{table}</div>'


def describe_size(sizes: Mapping[str, float]) -> str:
    """How much the codes and vectors of an item take, in a sentence."""
    vectors = f" and {sizes['vectors']:,.0f} bytes for vectors, which --store codes leaves out"
    return f"Each item takes {sizes['codes']:,.0f} bytes for codes{vectors if sizes['vectors'] else ''}."


def describe_words(words: Mapping[str, Any]) -> str:
    """How many of the first ten images have the label whose name is the query, in a sentence."""
    score = words[f"precision@{FIRST_PAGE}"]
    return (
        f"The names of {words['queries']:,} labels as queries: {score['value']:.3f} of the first ten of "
        f"{words['images']:,} images have the label (chance {score['chance']:.3f}, best possible {score['best']:.3f})."
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
