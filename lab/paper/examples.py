"""Retrieval examples and the t-SNE plane: small files made once from trained models, for figures to draw from.

Result files hold scores, not models, so this step trains the methods of Table 1 once more. A file that exists is kept.
"""

from __future__ import annotations

import base64
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.paper.published import COMPARED
from lab.paper.results import Experiment, Method, done
from rmsh.codes import hamming
from rmsh.compare.measure import Parts, parts_of
from rmsh.compare.run import method_of
from rmsh.core.errors import DataError
from rmsh.core.files import read_json, write_json
from rmsh.core.types import MODALITIES
from rmsh.data.open import open_pairs
from rmsh.data.pairs import is_raw
from rmsh.features.images import thumbnail
from rmsh.metrics.directions import modalities
from rmsh.metrics.histogram import shared_labels

if TYPE_CHECKING:
    from rmsh.compare.run import Run
    from rmsh.core.types import Direction, IntArray, LabelArray
    from rmsh.data.open import Opened
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import Method as Hashing

EXAMPLES, TSNE = "examples", "tsne"
SHOWN = 5  # hits per query
CLASSES, ITEMS_PER_CLASS = 6, 80  # of the t-SNE plane
_EXAMPLE_BITS, _TSNE_BITS = 64, 128
_SHOWN_IN_PLANE = ("rmsh",)
_LABELS = (3, 4)  # of an example query: fewer are easy, more are hard to read
_DIRECTIONS: tuple[Direction, ...] = ("t2i", "i2t")
_ARCHIVE = "images.tar"  # images named by a zero-padded id, as in coco66k
_THUMBNAIL = 120  # pixels
_PERPLEXITY = 30.0

Note = Callable[[str], None]


def make_examples(experiment: Experiment, folder: Path, *, data: str, cache: Path | None = None, on_note: Note) -> None:
    """Write what two queries find with each of the eight methods; the files contain small copies of images.

    Args:
        experiment: the first finished run of each method in Table 1, at 64 bits or the nearest length, is repeated.
        folder: where the files go.
        data: as for ``open_pairs``.
        cache: a folder for features.
        on_note: called with a sentence for each file, and for what cannot be made.
    """
    runs = _runs_to_repeat(experiment, COMPARED, _EXAMPLE_BITS, folder / EXAMPLES)
    if not runs:
        return
    opened = open_pairs(data)
    gallery = open_gallery(opened)
    if not gallery.files:
        on_note(f"{opened.name} has no images, only features; no retrieval examples are made.")
        return
    parts = parts_of(runs[0], opened, cache=cache)  # the same for all runs of Table 1
    try:
        queries = choose_queries(parts, gallery)
    except DataError as error:
        on_note(str(error))
        return
    captions = captions_of(opened)
    for run in runs:
        method = method_of(run).fit(parts.train)
        found = find_examples(method, parts, queries=queries, gallery=gallery, captions=captions)
        write_json(folder / EXAMPLES / run.path, {"run": run.to_json(), "examples": found})
        on_note(f"Wrote retrieval examples of {run.method} to {folder / EXAMPLES / run.path}.")


def make_tsne(experiment: Experiment, folder: Path, *, data: str, cache: Path | None = None, on_note: Note) -> None:
    """Write the t-SNE plane of RMSH's relaxed codes, at 128 bits or the nearest length; see make_examples."""
    for run in _runs_to_repeat(experiment, _SHOWN_IN_PLANE, _TSNE_BITS, folder / TSNE):
        parts = parts_of(run, open_pairs(data), cache=cache)
        plane = embed(method_of(run).fit(parts.train), parts.query)
        write_json(folder / TSNE / run.path, {"run": run.to_json(), **plane})
        on_note(f"Wrote the t-SNE plane to {folder / TSNE / run.path}.")


def _repeated_runs(experiment: Experiment, methods: Sequence[str], bits: int) -> list[Run]:
    """The first finished run of each method at the nearest length."""
    runs: list[Run] = []
    for name in methods:
        lengths = experiment.comparison.runs.get(Method(name), {})
        nearest = sorted(lengths, key=lambda length: abs(length - bits))
        runs += [result.run for length in nearest for result in done(lengths[length])][:1]
    return runs


def _runs_to_repeat(experiment: Experiment, methods: Sequence[str], bits: int, folder: Path) -> list[Run]:
    """Those that have no file yet."""
    return [run for run in _repeated_runs(experiment, methods, bits) if not (folder / run.path).exists()]


def _read(folder: Path, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The files of the runs; those of other runs, such as earlier ones with other options, are not read."""
    return [read_json(folder / run.path) for run in runs if (folder / run.path).exists()]


def read_examples(folder: Path, experiment: Experiment) -> dict[str, dict[str, Any]]:
    """For each direction and method a query and its hits, methods in the order of Table 1."""
    found: dict[str, dict[str, Any]] = {}
    for value in _read(folder / EXAMPLES, _repeated_runs(experiment, COMPARED, _EXAMPLE_BITS)):
        for example in value["examples"]:
            found.setdefault(example["direction"], {})[value["run"]["method"]] = example
    return found


def read_tsne(folder: Path, experiment: Experiment) -> dict[str, Any] | None:
    """The t-SNE plane of a data set, None if there is none."""
    return next(iter(_read(folder / TSNE, _repeated_runs(experiment, _SHOWN_IN_PLANE, _TSNE_BITS))), None)


@dataclass(frozen=True)
class Gallery:
    """The images of a data set: id -> a file, or a member of an archive."""

    files: Mapping[str, str]
    archive: Path | None = None

    def thumbnail(self, name: str) -> str:
        """A small JPEG of an item's image as base64."""
        return base64.b64encode(thumbnail(self._content(name), _THUMBNAIL)).decode()

    def _content(self, name: str) -> bytes:
        if self.archive is None:
            return Path(self.files[name]).read_bytes()
        with tarfile.open(self.archive) as archive:
            file = archive.extractfile(self.files[name])
            return file.read() if file is not None else b""

    def rows(self, pairs: Pairs) -> IntArray:
        """The rows of the items that have an image here."""
        return np.flatnonzero([name in self.files for name in pairs.ids.tolist()])


def open_gallery(opened: Opened) -> Gallery:
    """The images of some data, from its files or the archive next to its features; empty if there are only features."""
    pairs = opened.pairs
    if pairs.images is not None and is_raw(pairs.images):
        items = zip(pairs.ids.tolist(), pairs.images.tolist(), pairs.has_image.tolist(), strict=True)
        return Gallery({name: path for name, path, present in items if present})
    archive = Path(pairs.source) / _ARCHIVE
    if not archive.is_file():
        return Gallery({})
    with tarfile.open(archive) as members:
        names = members.getnames()
    return Gallery({Path(name).stem.lstrip("0") or "0": name for name in names}, archive)


def captions_of(opened: Opened) -> dict[str, str]:
    """The text of each item by its id; empty if the data has text features only."""
    texts = opened.pairs.texts
    if texts is None or not is_raw(texts):
        return {}
    return dict(zip(opened.pairs.ids.tolist(), texts.tolist(), strict=True))


def choose_queries(parts: Parts, gallery: Gallery, *, seed: int = 0) -> dict[Direction, int]:
    """One random query per direction, the same for all methods.

    A query has an image, three or four labels, and enough database images that share two of them.

    Raises:
        DataError: there are fewer than two such queries.
    """
    candidates, searched = gallery.rows(parts.query), gallery.rows(parts.database)
    labels, others = np.asarray(parts.query.labels)[candidates], np.asarray(parts.database.labels)[searched]
    counts = labels.sum(axis=1)
    enough = (shared_labels(labels, others) >= 2).sum(axis=1) >= SHOWN
    suitable = candidates[(counts >= _LABELS[0]) & (counts <= _LABELS[1]) & enough]
    if len(suitable) < len(_DIRECTIONS):
        raise DataError(
            f"{parts.query.source}: {len(suitable)} queries have an image and share two labels with {SHOWN} database "
            f"images; {len(_DIRECTIONS)} are needed. Omit --examples, or provide more images."
        )
    drawn = np.random.default_rng(seed).permutation(suitable)[: len(_DIRECTIONS)]
    return dict(zip(_DIRECTIONS, drawn.tolist(), strict=True))


def find_examples(
    method: Hashing,
    parts: Parts,
    *,
    queries: Mapping[Direction, int],
    gallery: Gallery,
    captions: Mapping[str, str],
) -> list[dict[str, Any]]:
    """What the query of each direction finds among the database items that have an image, as JSON values."""
    database = parts.database.take(gallery.rows(parts.database))
    found = []
    for direction, row in queries.items():
        query_modality, database_modality = modalities(direction)
        query = parts.query.take(np.array([row]))
        code = method.encode(query.features(query_modality), query_modality, ids=query.ids)
        distances = hamming(code.packed, method.encode_database(database, database_modality).packed).ravel()
        nearest = np.argsort(distances, kind="stable")[:SHOWN]
        shared = shared_labels(np.asarray(query.labels), np.asarray(database.labels)[nearest]).ravel()
        hits = [
            {**_item(database, int(i), gallery, captions), "distance": int(distances[i]), "shared": int(s)}
            for i, s in zip(nearest, shared, strict=True)
        ]
        found.append({"direction": direction, "query": _item(query, 0, gallery, captions), "hits": hits})
    return found


def _item(pairs: Pairs, row: int, gallery: Gallery, captions: Mapping[str, str]) -> dict[str, Any]:
    name = str(pairs.ids[row])
    labels = [pairs.class_names[c] for c in np.flatnonzero(np.asarray(pairs.labels)[row])]
    return {"id": name, "text": captions.get(name, name), "labels": labels, "image": gallery.thumbnail(name)}


def embed(method: Hashing, pairs: Pairs, *, seed: int = 0) -> dict[str, Any]:
    """t-SNE of the relaxed codes of items that have exactly one of six classes, both modalities in one plane.

    Returns:
        The names of the classes, and for each modality [x, y, class] of each item, in the same order of items.
    """
    from sklearn import manifold

    labels = np.asarray(pairs.labels)
    classes = choose_classes(labels)
    rows, kinds = _choose_items(labels[:, classes], seed)
    items = pairs.take(rows)
    values = np.concatenate([method.project(items.features(modality), modality) for modality in MODALITIES])
    perplexity = min(_PERPLEXITY, (len(values) - 1) / 3)
    plane = manifold.TSNE(2, perplexity=perplexity, init="pca", random_state=seed).fit_transform(values)
    points = {
        modality: [[round(float(x), 2), round(float(y), 2), int(k)] for (x, y), k in zip(half, kinds, strict=True)]
        for modality, half in zip(MODALITIES, np.split(plane, len(MODALITIES)), strict=True)
    }
    return {"classes": [pairs.class_names[c] for c in classes], "points": points}


def choose_classes(labels: LabelArray, count: int = CLASSES) -> list[int]:
    """Greedily, the classes for which the most items have exactly one of them.

    Example:
        >>> choose_classes(np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.uint8), 2)
        [0, 2]
    """
    chosen: list[int] = []
    held = np.zeros(len(labels), dtype=np.int64)
    for _ in range(min(count, labels.shape[1])):
        exactly_one = ((held[:, None] + labels) == 1).sum(axis=0)
        exactly_one[chosen] = -1
        best = int(exactly_one.argmax())
        chosen.append(best)
        held += labels[:, best]
    return chosen


def _choose_items(labels: LabelArray, seed: int) -> tuple[IntArray, IntArray]:
    """A random sample of the items with exactly one of the classes, and the class of each."""
    rng = np.random.default_rng(seed)
    single = labels.sum(axis=1) == 1
    chosen = [np.sort(rng.permutation(np.flatnonzero(single & (c == 1)))[:ITEMS_PER_CLASS]) for c in labels.T]
    return np.concatenate(chosen), np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen])
