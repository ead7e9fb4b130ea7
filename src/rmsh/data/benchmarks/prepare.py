"""Prepare a benchmark: read what its owner publishes, remove what the protocol removes, draw the split, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import sha256
from rmsh.data.benchmarks import community, mirflickr25k, mscoco, nuswide
from rmsh.data.benchmarks.protocols import Protocol, draw_split
from rmsh.data.benchmarks.published import Source, find, missing_files
from rmsh.data.benchmarks.registry import IMAGE_WIDTH, Benchmark, find_benchmark
from rmsh.data.pairs import is_raw
from rmsh.data.readers.feature_files import read_features
from rmsh.data.readers.prepared import refuse_finished, write_prepared
from rmsh.data.splits import Split

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, IntArray
    from rmsh.data.pairs import Pairs
    from rmsh.data.readers.matrix_roles import Role

READERS: dict[str, Callable[[Path], Source]] = {
    "mirflickr25k": mirflickr25k.read,
    "nuswide": nuswide.read,
    "mscoco": mscoco.read,
}


def prepare(
    name: str,
    root: Path,
    *,
    out: Path,
    split: str | Protocol = "paper",
    seed: int = 0,
    stratified: bool = False,
    images: str | None = None,
    texts: str | None = None,
    without_images: bool = False,
    paper_inputs: bool = False,
) -> dict[str, Any]:
    """Prepare a benchmark, and return the manifest of the folder.

    Args:
        name: "mirflickr25k", "nuswide" or "mscoco".
        root: the folder with the owner's files, or with the community's matrices.
        out: the folder to write.
        split: a protocol, or the name of one of the benchmark's.
        seed: what is drawn follows from it.
        stratified: draw each class in proportion.
        images: features of the pictures, "FILE" or "FILE:KEY", by id or in the owner's order; in their place.
        texts: the same for the texts.
        without_images: leave the pictures out, where only texts and labels are wanted.
        paper_inputs: refuse features of other widths than the paper's.

    Raises:
        DataError: files are missing (the message says who publishes them) or damaged, or there are too few pairs.
        ConfigError: there is no such benchmark or split.
        InputError: ``out`` holds prepared pairs already.
    """
    benchmark = find_benchmark(name)
    protocol = benchmark.protocol(split) if isinstance(split, str) else split
    refuse_finished(out)
    source = _with_frequent_classes(read_source(benchmark, root), protocol.classes)
    labels, usable = np.asarray(source.pairs.labels), _usable(source, protocol)
    drawn = draw_split(protocol, labels, usable=usable, part=source.part, seed=seed, stratified=stratified)
    rows = np.union1d(drawn.database, drawn.query)
    pairs, taken = _with_features(source, rows, {"images": images, "texts": texts})
    pairs = _checked_images(pairs, benchmark, without=without_images)
    notes = [*source.notes, *_removal_notes(source, usable, len(rows)), *taken, *_picture_notes(pairs)]
    facts = {
        "benchmark": name,
        "protocol": asdict(protocol) | {"seed": seed, "stratified": stratified},
        "notes": notes + _width_notes(pairs, benchmark, strict=paper_inputs),
        "vocabulary": list(source.vocabulary) if texts is None else [],
        "inputs": {path.relative_to(root).as_posix(): sha256(path) for path in source.inputs},
    }
    return write_prepared(out, pairs, _renumbered(drawn, rows), facts=facts)


def read_source(benchmark: Benchmark, root: Path) -> Source:
    """Read a folder in the owner's layout, or the community's matrices where it has none of it."""
    if not root.is_dir():
        raise missing_files(root, [benchmark.layout], benchmark)
    if find(root, benchmark.marker) is None and community.files_in(root):
        return community.read(root)
    return READERS[benchmark.name](root)


def _with_frequent_classes(source: Source, count: int | None) -> Source:
    """The same items with the most frequent classes alone, in their order."""
    labels = np.asarray(source.pairs.labels)
    if count is None or count == labels.shape[1]:
        return source
    if labels.shape[1] < count:
        raise DataError(
            f"{source.pairs.source} has {labels.shape[1]} classes, the split is of the {count} most frequent ones; "
            "take another split."
        )
    chosen = np.sort(np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")[:count])
    names = tuple(source.pairs.class_names[c] for c in chosen)
    note = f"the {count} most frequent of {labels.shape[1]} classes are {', '.join(names)}"
    pairs = replace(source.pairs, labels=labels[:, chosen], class_names=names)
    return replace(source, pairs=pairs, notes=(*source.notes, note))


def _usable(source: Source, protocol: Protocol) -> BitArray:
    """(n,) which items the protocol keeps."""
    return (source.pairs.labelled | (not protocol.labelled)) & (source.worded | (not protocol.worded))


def _removal_notes(source: Source, usable: BitArray, kept: int) -> list[str]:
    bare, wordless, removed = (int((~mask).sum()) for mask in (source.pairs.labelled, source.worded, usable))
    notes = [f"{bare:,} of {len(usable):,} pairs have no label, {wordless:,} no word; {removed:,} were removed"]
    left_out = len(usable) - removed - kept
    return notes + [f"{left_out:,} pairs are in no part of the split and were left out"] * (left_out > 0)


def _with_features(source: Source, rows: IntArray, files: Mapping[Role, str | None]) -> tuple[Pairs, list[str]]:
    """The items of some rows, with features from files in the place of what the owner publishes."""
    pairs, notes = source.pairs.take(rows), []
    for role, text in files.items():
        if text is not None:
            ids, canonical_id = source.pairs.ids, source.canonical_id
            column, note = read_features(text, role, ids, wanted=rows, canonical_id=canonical_id)
            changed: dict[str, Any] = {role: column, "has_image" if role == "images" else "has_text": None}
            pairs = replace(pairs, **changed)
            notes.append(note)
    return pairs, notes


def _checked_images(pairs: Pairs, benchmark: Benchmark, *, without: bool) -> Pairs:
    if without:
        return replace(pairs, images=None, has_image=None)  # type: ignore[arg-type]  # filled in
    if pairs.images is None or not pairs.has_image.any():
        raise DataError(
            f"{pairs.source} has no pictures. Give their features by --images, or --without-images to do without. "
            f"{benchmark.missing}"
        )
    return pairs


def _picture_notes(pairs: Pairs) -> list[str]:
    missing = int((~pairs.has_image).sum())
    return [f"{missing:,} pictures are missing; their texts stay"] if 0 < missing < len(pairs) else []


def _width_notes(pairs: Pairs, benchmark: Benchmark, *, strict: bool) -> list[str]:
    """Sentences about inputs that are not as wide as the paper's; ``strict`` makes the first an error."""
    notes = []
    for what, column, width in (("images", pairs.images, IMAGE_WIDTH), ("texts", pairs.texts, benchmark.text_width)):
        found = "absent" if column is None else "raw" if is_raw(column) else f"{column.shape[1]:,} wide"
        if found != f"{width:,} wide":
            notes.append(f"the {what} are {found}; the paper's features are {width:,} wide")
    if strict and notes:
        raise DataError(f"{pairs.source}: {notes[0]}. Give such features, or leave out --paper-inputs.")
    return notes


def _renumbered(split: Split, rows: IntArray) -> Split:
    """The same split of the kept rows alone."""
    return Split(split.name, *(np.searchsorted(rows, part) for part in (split.database, split.query, split.train)))
