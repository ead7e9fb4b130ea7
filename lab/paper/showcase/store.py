"""What needs a trained method and not only its scores: retrieval examples and the plane of relaxed codes, as files.

Both are made once: a file that is there is left as it is, so that an interrupted command goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.paper.lineup import Entry, line_up
from lab.paper.names import COMPARED
from lab.paper.outcomes import Outcome, datasets, done
from lab.paper.showcase.embedding import embed
from lab.paper.showcase.examples import captions_of, choose_queries, find_examples
from lab.paper.showcase.gallery import open_gallery
from rmsh.compare.measure import Parts, parts_of
from rmsh.core.errors import DataError
from rmsh.core.files import read_json, write_json
from rmsh.data.open import open_pairs
from rmsh.methods import create

if TYPE_CHECKING:
    from rmsh.compare.grid import Run
    from rmsh.data.open import Opened
    from rmsh.methods.base import Method

__all__ = ["make_showcase", "read_examples", "read_planes"]

EXAMPLES, PLANES = "examples", "planes"
_EXAMPLE_BITS, _PLANE_BITS = 64, 128

Tell = Callable[[str], None]


def make_showcase(
    outcomes: Sequence[Outcome],
    folder: Path,
    *,
    data: Mapping[str, str],
    examples: bool = True,
    cache: Path | None = None,
    tell: Tell,
) -> None:
    """Train the methods of the comparison once more, and write what they find and how they lay items out.

    Args:
        outcomes: of the grid; the first seed of each method is trained again.
        folder: where the files go.
        data: for each dataset what ``open_pairs`` takes.
        examples: whether to show what queries find; these files hold small copies of pictures.
        cache: a folder where features are kept.
        tell: is given a sentence about each file, and about what cannot be made.
    """
    for dataset in sorted({*datasets(outcomes)} & {*data}):
        shown = COMPARED if examples else ()
        lookers = _missing(_runs(outcomes, dataset, shown, _EXAMPLE_BITS), folder / EXAMPLES)
        planes = _missing(_runs(outcomes, dataset, ("rmsh",), _PLANE_BITS), folder / PLANES)
        if lookers or planes:
            opened = open_pairs(data[dataset])
            parts = parts_of((lookers or planes)[0], opened, cache=cache)  # the same for all runs of a comparison
            _make_examples(lookers, opened, parts, folder=folder / EXAMPLES, tell=tell)
            _make_planes(planes, parts, folder=folder / PLANES, tell=tell)


def _runs(outcomes: Sequence[Outcome], dataset: str, methods: Sequence[str], bits: int) -> list[Run]:
    """The first run of each method at a length, or at the nearest there is."""
    lineup = line_up(outcomes, dataset)
    runs = []
    for name in methods:
        lengths = lineup.runs.get(Entry(name), {})
        finished = [o.run for length in sorted(lengths, key=lambda b: abs(b - bits)) for o in done(lengths[length])]
        runs += finished[:1]
    return runs


def _missing(runs: Sequence[Run], folder: Path) -> list[Run]:
    return [run for run in runs if not (folder / run.path).exists()]


def _make_examples(runs: Sequence[Run], opened: Opened, parts: Parts, *, folder: Path, tell: Tell) -> None:
    gallery = open_gallery(opened)
    if runs and not gallery.files:
        tell(f"{opened.name} has no pictures at hand, so there are no retrieval examples of it.")
        return
    try:
        queries = choose_queries(parts, gallery) if runs else {}
    except DataError as error:
        tell(str(error))
        return
    captions = captions_of(opened)
    for run in runs:
        found = find_examples(_learn(run, parts), parts, queries=queries, gallery=gallery, captions=captions)
        write_json(folder / run.path, {"run": run.to_json(), "examples": found})
        tell(f"{folder / run.path}: what two queries find with {run.method}.")


def _make_planes(runs: Sequence[Run], parts: Parts, *, folder: Path, tell: Tell) -> None:
    for run in runs:
        write_json(folder / run.path, {"run": run.to_json(), **embed(_learn(run, parts), parts.query)})
        tell(f"{folder / run.path}: the relaxed codes of six classes by t-SNE.")


def _learn(run: Run, parts: Parts) -> Method:
    method = create(run.method, preset=run.preset, bits=run.bits, seed=run.seed, **run.options)
    return method.fit(parts.train)


def read_examples(folder: Path, dataset: str) -> dict[str, dict[str, Any]]:
    """For each direction and method one query and its hits, methods in the order of the paper's table."""
    values = [read_json(path) for path in sorted((folder / EXAMPLES / dataset).glob("*.json"))]
    by_method = {value["run"]["method"]: value["examples"] for value in values}
    found: dict[str, dict[str, Any]] = {}
    for method in (name for name in COMPARED if name in by_method):
        for example in by_method[method]:
            found.setdefault(example["direction"], {})[method] = example
    return found


def read_planes(folder: Path, dataset: str) -> list[dict[str, Any]]:
    """What ``embed`` gave for each run there is."""
    return [read_json(path) for path in sorted((folder / PLANES / dataset).glob("*.json"))]
