"""The report of a build in words: which delta was chosen, scores next to chance, and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmsh.builder.scores import FIRST_PAGE, RECALL

DIRECTION_NAMES = {"t2i": "Text to image", "i2t": "Image to text", "i2i": "Image to image", "t2t": "Text to text"}


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
