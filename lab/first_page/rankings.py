"""Rankings of the 3,000 photographs: cosine of caption vectors, FTS5, exact labels, and those read from JSON files."""

from __future__ import annotations

import re
import sqlite3
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import read_json
from rmsh.features.minilm import MiniLM
from rmsh.search.scoring import labels_in_text

LENGTH = 50  # items of a ranking
_STOP_WORDS = frozenset(["a", "an", "and", "at", "for", "in", "is", "of", "on", "the", "to", "with"])


def read_captions(root: Path) -> dict[str, str]:
    """Captions of the photographs in ``images.tar``, by ID, in the order of ``pairs.tsv``."""
    with tarfile.open(root / "images.tar") as images:
        photographs = {plain_id(Path(name).stem) for name in images.getnames()}
    lines = (root / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return {item: caption for item, _, caption in rows if item in photographs}


def plain_id(item: str) -> str:
    """An ID without leading zeros: files have 12 digits, ``pairs.tsv`` and the judgements as few as possible."""
    return item.lstrip("0")


def cosine(captions: Mapping[str, str], queries: Sequence[str]) -> dict[str, list[str]]:
    """Photographs by the cosine of the MiniLM vectors of query and caption."""
    ids, encoder = list(captions), MiniLM()
    scores = encoder.encode(queries) @ encoder.encode(list(captions.values())).T
    nearest = np.argsort(-scores, axis=1, kind="stable")[:, :LENGTH]
    return {query: [ids[row] for row in rows] for query, rows in zip(queries, nearest, strict=True)}


def fts5(captions: Mapping[str, str], queries: Sequence[str]) -> dict[str, list[str]]:
    """Photographs whose caption has a word of the query, stemmed, without stop words; by BM25 in SQLite's FTS5."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE captions USING fts5(id UNINDEXED, caption, tokenize='porter unicode61')")
    database.executemany("INSERT INTO captions VALUES (?, ?)", captions.items())
    ranked = {}
    for query in queries:
        words = [word for word in re.findall(r"\w+", query.lower()) if word not in _STOP_WORDS]
        sql = "SELECT id FROM captions WHERE captions MATCH ? ORDER BY rank, rowid LIMIT ?"
        found = database.execute(sql, (" OR ".join(f'"{word}"' for word in words), LENGTH)) if words else []
        ranked[query] = [item for (item,) in found]
    database.close()
    return ranked


def label_match(labels: Mapping[str, Sequence[str]], queries: Sequence[str]) -> dict[str, list[str]]:
    """Photographs with labels that the query names, singular or plural: most such labels first, then fewest labels.

    A label that is part of another is not named: "hot dog" names no dog.
    """
    known = {label for given in labels.values() for label in given}
    ranked = {}
    for query in queries:
        named = labels_in_text(known, query)
        named -= {label for label in named for other in named - {label} if labels_in_text({label}, other)}
        found = [(-len(named.intersection(given)), len(given), item) for item, given in labels.items()]
        ranked[query] = [item for count, _, item in sorted(found, key=lambda each: each[:2]) if count][:LENGTH]
    return ranked


def read_ranking(path: Path) -> dict[str, list[str]]:
    """A ranking from a JSON file that maps each query to a list of IDs, best first.

    Raises:
        DataError: the file has another form.
    """
    content = read_json(path)
    if not isinstance(content, dict) or not all(isinstance(items, list) for items in content.values()):
        raise DataError(f"{path} is not a ranking; write a JSON object that maps each query to a list of IDs.")
    return {query: [plain_id(str(item)) for item in items] for query, items in content.items()}
