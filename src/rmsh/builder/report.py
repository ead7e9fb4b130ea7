"""The report of a build: one page that needs no other file, with scores beside chance and searches to look at."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from rmsh.errors import DataError

__all__ = ["DIRECTION_WORDS", "about_delta", "render_report", "thumbnail"]

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
    from rmsh.features.pictures import read_picture

    if path is None:
        return None
    try:
        small = read_picture(path)
    except DataError:
        return None
    small.thumbnail((_SIDE * 2, _SIDE * 2))  # twice the size, for fine screens
    file = io.BytesIO()
    small.save(file, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


def _left_out(skipped: Mapping[str, Any]) -> list[str]:
    if not skipped["count"]:
        return []
    listed = "".join(f"<li>{escape(sentence)}" for sentence in skipped["examples"])
    return [f"<h2>Left out</h2><ul>{listed}</ul><p class=muted>skipped.csv lists all {skipped['count']:,}.</p>"]


def _stages(seconds: Mapping[str, float]) -> list[str]:
    listed = ", ".join(f"{escape(name)} {value:.1f} s" for name, value in seconds.items())
    return [f"<p class=muted>Time: {listed}.</p>"]
