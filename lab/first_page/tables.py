"""Tables of the judged first page, as headings and rows: functions of stored results."""

from __future__ import annotations

from typing import Any, TypeAlias

Table: TypeAlias = tuple[list[str], list[list[str]]]

_TITLES = {
    "library": "rmsh, images with captions",
    "library, images and labels": "rmsh, images with labels",
    "library, images alone": "rmsh, images alone",
    "library, images alone, codes": "rmsh, images alone, by codes",
    "cosine": "cosine of caption vectors",
    "fts5": "keywords in captions (FTS5)",
    "labels": "exact labels",
    "best order": "best possible order",
}
_COMPARED = (("library", "cosine"), ("library", "fts5"), ("library, images and labels", "labels"))


def _by_ranking(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows of a result of judged queries by ranking and kind of query."""
    rows: dict[str, dict[str, Any]] = {}
    for row in found["rows"]:
        rows.setdefault(row["ranking"], {})[row["kind"]] = row
    return rows


def page(found: dict[str, Any]) -> Table:
    """The first ten hits of judged queries, by ranking and kind of query."""
    rankings, rows = _by_ranking(found), list[list[str]]()
    kinds = list(rankings["library"])
    for ranking, title in _TITLES.items():
        cells = [f"{rankings[ranking][kind]['precision@10']['value']:.2f}" for kind in kinds]
        shares = [f"{rankings[ranking]['all'][metric]['value']:.0%}" for metric in ("of possible", "first right")]
        rows.append([title, *cells, *shares])
    return ["share of right images among ten", *kinds, "of the possible", "first hit right"], rows


def differences(test: dict[str, Any], everything: dict[str, Any]) -> Table:
    """Precision@10 of a library less that of simpler rankings, with intervals, for the test half and for all."""
    kinds, rows = list(_by_ranking(test)["library"]), list[list[str]]()
    for part, found in (("test", test), ("all", everything)):
        for ranking, other in _COMPARED:
            over = [_by_ranking(found)[ranking][kind]["precision@10"]["over"][other] for kind in kinds]
            cells = [f"{d['difference']:+.2f} [{d['interval'][0]:+.2f}, {d['interval'][1]:+.2f}]" for d in over]
            rows.append([part, f"{_TITLES[ranking]}, less {_TITLES[other]}", *cells])
    return ["queries", "difference of precision@10", *kinds], rows


def composed(found: dict[str, Any]) -> Table:
    """What composed queries find, by a model that has not seen the photographs."""
    sides = ("A", "B", "both")
    rows = [
        [row["A, B"], row["query"], *(f"{row[s]:.2f} ({row[f'{s} chance']:.2f})" for s in sides)]
        for row in found["rows"]
        if row["model"] == "twin"
    ]
    return ["A and B", "query", "show A (chance)", "show B (chance)", "show both (chance)"], rows


def cut_off(found: dict[str, Any]) -> Table:
    """How many queries with and without an answer have weak hits only."""
    sizes = [
        {**row, "library": f"{row['items']:,} images alone, {row['draws']} times", "part": "dev and test"}
        for row in found["sizes"]
    ]
    rows = [
        [
            row["library"],
            row["part"],
            f"{row['cut-off']:.1f}",
            *(f"{row[f'{kind} weak']} of {row[f'{kind} queries']}" for kind in ("unanswered", "answered")),
        ]
        for row in [*found["rows"], *sizes]
    ]
    return ["library", "queries", "cut-off", "no answer: called weak", "an answer: called weak"], rows
