"""The queries and the judgements of this folder, and which items of a ranking still have to be judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rmsh.core.errors import ConfigError, DataError
from rmsh.core.files import read_json, write_text

Ranking: TypeAlias = Mapping[str, Sequence[str]]  # query to IDs, best first
Grades: TypeAlias = Mapping[str, Mapping[str, int]]  # query to ID to grade

FOLDER = Path(__file__).resolve().parent
QUERIES = FOLDER / "queries.json"
JUDGEMENTS = FOLDER / "judgements.json"
UNANSWERABLE = ("absent", "gibberish")  # kinds of query for which no photograph is right
GRADES = (0, 1, 2)  # wrong, partly right, right
PARTS = ("dev", "test", "all")
DEPTH = 10  # items on the first page


@dataclass(frozen=True)
class Query:
    """A query, its kind, and the part of the set it belongs to: "dev" or "test"."""

    query: str
    kind: str
    part: str


def read_queries(part: str = "all", *, answerable: bool = True, path: Path = QUERIES) -> list[Query]:
    """The queries of a part: those that photographs can answer, or the absent and gibberish ones.

    Raises:
        ConfigError: the part is unknown.
    """
    if part not in PARTS:
        raise ConfigError(f"There is no part {part!r}; choose one of {', '.join(PARTS)}.")
    queries = [Query(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    return [
        query for query in queries if part in ("all", query.part) and (query.kind not in UNANSWERABLE) == answerable
    ]


def read_judgements(path: Path = JUDGEMENTS) -> dict[str, dict[str, int]]:
    """Grades by query and ID."""
    return {query: dict(grades) for query, grades in read_json(path).items()}


def write_judgements(judgements: Grades, path: Path = JUDGEMENTS) -> None:
    """Write one line per query, with IDs in order."""
    lines = [
        f" {json.dumps(query, ensure_ascii=False)}: {json.dumps(dict(sorted(grades.items())), separators=(',', ':'))}"
        for query, grades in judgements.items()
    ]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def add_grades(judgements: dict[str, dict[str, int]], grades: Grades) -> None:
    """Add grades to the judgements, in place; a new grade of an item replaces the old one.

    Raises:
        DataError: the judgements have no such query.
    """
    unknown = [query for query in grades if query not in judgements]
    if unknown:
        raise DataError(f"There are grades for {unknown[:10]}, which the judgements do not have; correct the query.")
    for query, judged in grades.items():
        judgements[query].update(judged)


def unjudged(ranking: Ranking, judgements: Grades) -> dict[str, list[str]]:
    """IDs among the first ten of each query that have no grade; queries without any are left out.

    Example:
        >>> unjudged({"cat": ["1", "2"], "dog": ["3"]}, {"cat": {"1": 2}, "dog": {"3": 0}})
        {'cat': ['2']}
    """
    missing = {
        query: [item for item in items[:DEPTH] if item not in judgements.get(query, {})]
        for query, items in ranking.items()
    }
    return {query: items for query, items in missing.items() if items}


def check_ranking(ranking: Ranking, queries: Sequence[Query]) -> None:
    """Check that a ranking has every query, and no ID twice.

    Raises:
        DataError: a query is missing, or an ID is repeated.
    """
    missing = [query.query for query in queries if query.query not in ranking]
    if missing:
        raise DataError(f"The ranking has no entry for {missing[:10]}; give a list of IDs, or an empty list, for each.")
    for query, items in ranking.items():
        if len(set(items)) < len(items):
            raise DataError(f"The ranking of {query!r} has an ID twice; give each ID once.")
