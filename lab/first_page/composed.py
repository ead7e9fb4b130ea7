"""What composed queries find among the 3,000 photographs: an image and words, and words less other words.

The library has images alone. Labels and caption words, which it does not know, tell what a photograph shows. The model
of the wheel has seen the photographs in training; its twin has not.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer

from lab.data import coco66k, coco66k_root, write_measurement
from lab.first_page.judged import DEPTH
from lab.first_page.library import fill, twin
from lab.first_page.rankings import read_captions
from rmsh.models import wheel_model
from rmsh.search.searcher import Searcher

if TYPE_CHECKING:
    from rmsh.core.types import BitArray
    from rmsh.model import Model

Shown: TypeAlias = Mapping[str, "BitArray"]  # what is shown to which photographs show it, (n,)

BEACH = re.compile(r"\b(beach|beaches|ocean|sea|shore|surf|sand|sandy|waves?)\b", re.IGNORECASE)
LEAST = 10  # photographs that show both things, or one without the other
PAIRS = 100  # drawn from all pairs of labels
IMAGES = 3  # query images of a pair


def main(out: Annotated[Path, typer.Argument(help="Folder with the twin; it is trained if missing.")]) -> None:
    """Measure both models, write lab/results/first_page/composed.json and print it."""
    pairs, captions = coco66k("minilm").pairs, read_captions(Path(coco66k_root()))
    inside = np.array([name in captions for name in pairs.ids.tolist()])
    photographs = pairs.take(np.flatnonzero(inside))
    shown = {name: np.asarray(photographs.labels)[:, i] > 0 for i, name in enumerate(photographs.class_names)}
    shown["beach"] = np.array([bool(BEACH.search(captions[name])) for name in photographs.ids.tolist()])
    rows = []
    for name, model in (("wheel", wheel_model()), ("twin", twin(np.flatnonzero(~inside), out))):
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder) / "library", _readable(model), photographs, {})
            with Searcher.open(Path(folder) / "library") as searcher:
                rows += [{"model": name, **row} for row in _measure(searcher, shown, photographs.ids.tolist())]
    what = f"shares of the first {DEPTH} of 3,000 photographs that show A, B, or both; chance is the share of all"
    write_measurement("first_page/composed", {"what": what, "rows": rows})
    for row in rows:
        print(
            "  ".join(
                f"{key} {value:.3f}" if isinstance(value, float) else f"{value!s:>24}" for key, value in row.items()
            )
        )


def _readable(model: Model) -> Model:
    return model.with_encoders({"text": model.encoders["text"]})


def _measure(searcher: Searcher, shown: Shown, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Averages over pairs of labels, and the two examples with a beach."""
    labels = [name for name in shown if name != "beach"]
    both = [(a, b) for a, b in permutations(labels, 2) if (shown[a] & shown[b]).sum() >= LEAST and b != "person"]
    apart = [
        (a, b)
        for a, b in permutations(labels, 2)
        if a in labels[1::2] and _some(shown, a, b) >= LEAST <= (shown[a] & shown[b]).sum()
    ]
    both, apart = (np.random.default_rng(0).permutation(pairs)[:PAIRS].tolist() for pairs in (both, apart))
    return [
        *_sums("image of A + words B", both, searcher, shown, ids),
        *_sums("image of A + words B", [("dog", "beach")], searcher, shown, ids),
        *_differences("words A - words B", apart, searcher, shown, ids),
        *_differences("words A - words B", [("beach", "person")], searcher, shown, ids, said="people"),
    ]


def _some(shown: Shown, a: str, b: str) -> int:
    return int((shown[a] & ~shown[b]).sum())


def _sums(
    what: str, pairs: Sequence[tuple[str, str]], searcher: Searcher, shown: Shown, ids: Sequence[str]
) -> list[dict[str, Any]]:
    rng, found = np.random.default_rng(0), []
    for a, b in pairs:
        text = searcher.text(b)
        for row in rng.choice(np.flatnonzero(shown[a] & ~shown[b]), IMAGES if len(pairs) > 1 else 30, replace=False):
            image = searcher.item(ids[row])
            queries = (image, text, searcher.compose([image, text]))
            found.append([_shares(searcher, query, shown, ids, a, b) for query in queries])
    return _rows(what, pairs, shown, np.array(found), ("image of A", "B", "image of A + B"))


def _differences(
    what: str, pairs: Sequence[tuple[str, str]], searcher: Searcher, shown: Shown, ids: Sequence[str], *, said: str = ""
) -> list[dict[str, Any]]:
    texts = ((a, b, (a, f"{a} - {said or b}")) for a, b in pairs)
    found = [[_shares(searcher, searcher.text(text), shown, ids, a, b) for text in both] for a, b, both in texts]
    return _rows(what, pairs, shown, np.array(found), ("A", "A - B"))


def _shares(searcher: Searcher, query: Any, shown: Shown, ids: Sequence[str], a: str, b: str) -> list[float]:
    place = {name: row for row, name in enumerate(ids)}
    rows = [place[hit.item.id] for hit in searcher.search(query, DEPTH)]
    return [float(found[rows].mean()) for found in (shown[a], shown[b], shown[a] & shown[b])]


def _rows(
    what: str, pairs: Sequence[tuple[str, str]], shown: Shown, found: Any, names: Sequence[str]
) -> list[dict[str, Any]]:
    which = " and ".join(pairs[0]) if len(pairs) == 1 else f"{len(pairs)} pairs of labels"
    columns = [(shown[a], shown[b], shown[a] & shown[b]) for a, b in pairs]
    chance = np.mean([[column.mean() for column in each] for each in columns], axis=0)
    sides = ("A", "B", "both")
    return [
        {"what": what, "A, B": which, "query": name}
        | {
            f"{side}{kind}": float(value)
            for kind, values in (("", shares), (" chance", chance))
            for side, value in zip(sides, values, strict=True)
        }
        for name, shares in zip(names, found.mean(axis=0), strict=True)
    ]
