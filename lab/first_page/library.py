"""Rank the judged queries by a library of the 3,000 photographs, built and searched as a user would.

The model is a twin of the bundled one, trained on coco66k without these photographs. Image features come from coco66k,
so nothing is decoded. The rankings are JSON files for ``make lab ARGS="first-page ..."``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from lab.data import coco66k, coco66k_root
from lab.first_page.judged import read_queries
from lab.first_page.rankings import LENGTH, label_match, read_captions
from lab.wheel_model import train
from rmsh.core.files import write_json
from rmsh.library import Item, Library
from rmsh.model import Model, load
from rmsh.pipeline import codes_of
from rmsh.search.searcher import Rank, Searcher

if TYPE_CHECKING:
    from rmsh.core.types import IntArray
    from rmsh.data.pairs import Pairs


RANKS: tuple[Rank, ...] = ("best", "codes")
LIBRARIES = {  # whether the items have captions and labels
    "library": (True, False),
    "library, images alone": (False, False),
    "library, images and labels": (False, True),
}


def main(out: Annotated[Path, typer.Argument(help="Folder for the model and the rankings.")]) -> None:
    """Train the twin unless the folder has it, then write rankings by everything, by codes, and by exact labels."""
    pairs = coco66k("minilm").pairs
    captions = read_captions(Path(coco66k_root()))
    shown = np.array([name in captions for name in pairs.ids.tolist()])
    model = twin(np.flatnonzero(~shown), out / "twin")
    photographs = pairs.take(np.flatnonzero(shown))
    queries = [query.query for answerable in (True, False) for query in read_queries(answerable=answerable)]
    write_json(out / "labels.json", label_match(labels_of(photographs), queries))
    with tempfile.TemporaryDirectory() as folder:
        for name, (texts, labels) in LIBRARIES.items():
            path = Path(folder) / name
            fill(path, model, photographs, captions if texts else {}, labels=labels)
            with Searcher.open(path) as searcher:
                for rank in RANKS:
                    found = {query: searcher.search(searcher.text(query), LENGTH, rank=rank) for query in queries}
                    title = name if rank == "best" else f"{name}, codes"
                    write_json(out / f"{title}.json", {query: [hit.item.id for hit in found[query]] for query in found})


def twin(rows: IntArray, folder: Path) -> Model:
    """The model in a folder, trained on these pairs of coco66k like the bundled one if there is none yet."""
    if not (folder / "config.json").exists():
        train(rows, {}, folder)
    model = load(folder)
    return model.with_encoders({"text": model.encoders["text"]})


def labels_of(pairs: Pairs) -> dict[str, list[str]]:
    """Label names of each pair, by ID."""
    names, given = np.array(pairs.class_names), np.asarray(pairs.labels) > 0
    return {name: names[row].tolist() for name, row in zip(pairs.ids.tolist(), given, strict=True)}


def fill(folder: Path, model: Model, pairs: Pairs, captions: dict[str, str], *, labels: bool = False) -> None:
    """Write a library of photographs, with captions or without, with labels or without."""
    codes = codes_of(model, pairs, vectors=True)
    if not captions:
        codes.pop("text", None)
    given = labels_of(pairs) if labels else {}
    items = [Item(name, text=captions.get(name), labels=tuple(given.get(name, ()))) for name in pairs.ids.tolist()]
    with Library.create(folder, model) as library:
        library.add(items, codes, model=model.fingerprint)
