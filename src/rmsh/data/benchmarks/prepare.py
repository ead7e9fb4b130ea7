"""Prepare a benchmark: read its published files, apply a protocol, draw the split, and write prepared pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import ConfigError, DataError
from rmsh.core.files import sha256
from rmsh.data.benchmarks.base import BENCHMARKS, IMAGE_WIDTH, Benchmark, Protocol, find
from rmsh.data.benchmarks.published import TOPICS, Source, read_mirflickr25k, read_mscoco, read_nuswide
from rmsh.data.pairs import Pairs, is_raw
from rmsh.data.readers.feature_files import Role, read_features, read_matrix_pairs
from rmsh.data.readers.matrix_files import SUFFIXES, list_matrices
from rmsh.data.readers.prepared import refuse_finished, write_prepared
from rmsh.data.splits import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, LabelArray

READERS = {"mirflickr25k": read_mirflickr25k, "nuswide": read_nuswide, "mscoco": read_mscoco}
FILE_NAMES_KEY = "fall"  # the key of file names as ids in some matrix files, in lower case


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

    ``root`` has the published files, or matrices of features, tags and labels. ``split`` is a protocol or the name of
    one of the benchmark's. ``images`` and ``texts`` ("FILE" or "FILE:KEY") are features, by ID or in the published
    order, to use instead; ``without_images`` omits the images. ``stratified`` draws each class in proportion.
    ``paper_inputs`` requires features as wide as the paper's.
    """
    if name not in BENCHMARKS:
        raise ConfigError(f"There is no benchmark {name!r}; known are {', '.join(BENCHMARKS)}.")
    benchmark = BENCHMARKS[name]
    protocol = benchmark.protocol(split) if isinstance(split, str) else split
    refuse_finished(out)
    source = _with_frequent_classes(_read_source(benchmark, root), protocol.classes)
    whole = source.pairs
    usable = (whole.labelled | (not protocol.labelled)) & (source.worded | (not protocol.worded))
    labels = np.asarray(whole.labels)
    drawn = draw_split(protocol, labels, usable=usable, part=source.part, seed=seed, stratified=stratified)
    rows = np.union1d(drawn.database, drawn.query)
    pairs, feature_notes = _with_features(source, rows, {"images": images, "texts": texts})
    if without_images:
        pairs = replace(pairs, images=None, has_image=None)  # type: ignore[arg-type]  # filled in
    elif pairs.images is None or not pairs.has_image.any():
        advice = "Give their features with --images, or omit them with --without-images."
        raise DataError(f"{root} has no images. {advice} {benchmark.missing}")
    counts = [int((~mask).sum()) for mask in (whole.labelled, source.worded, usable, pairs.has_image)]
    unlabelled, wordless, removed, missing = counts
    notes = [
        *source.notes,
        f"{unlabelled:,} of {len(whole):,} pairs have no label, {wordless:,} no word; {removed:,} were removed",
    ]
    if left_out := len(whole) - removed - len(rows):
        notes.append(f"{left_out:,} pairs are in no part of the split and were omitted")
    notes += feature_notes
    if 0 < missing < len(pairs):
        notes.append(f"{missing:,} images are missing; their texts are kept")
    facts = {
        "benchmark": name,
        "protocol": protocol.model_dump() | {"seed": seed, "stratified": stratified},
        "notes": notes + _width_notes(pairs, benchmark, strict=paper_inputs),
        "vocabulary": list(source.vocabulary) if texts is None else [],
        "inputs": {path.relative_to(root).as_posix(): sha256(path) for path in source.inputs},
    }
    kept = Split(drawn.name, *(np.searchsorted(rows, part) for part in (drawn.database, drawn.query, drawn.train)))
    return write_prepared(out, pairs, kept, facts=facts)


def _read_source(benchmark: Benchmark, root: Path) -> Source:
    """Read a folder in the published layout, or else matrices."""
    if not root.is_dir():
        raise DataError(f"{root} lacks {benchmark.layout}. {benchmark.missing}")
    if find(root, benchmark.marker) is None and matrix_files_below(root):
        return read_matrices(root)
    return READERS[benchmark.name](root)


def matrix_files_below(root: Path) -> list[Path]:
    """The matrix files of a folder and of its subfolders."""
    return sorted(path for pattern in ("*", "*/*") for path in root.glob(pattern) if path.suffix.lower() in SUFFIXES)


def read_matrices(root: Path) -> Source:
    """Read matrices of features, tags and labels, such as mirflickr25k-*.mat; pixels are ignored."""
    files = matrix_files_below(root)
    pairs, split, notes = read_matrix_pairs(files, source=str(root))
    labels = pairs.labels
    if labels is None:
        raise DataError(f"{root}: the matrices have no labels, which a benchmark needs. Add the file with LAll.")
    if any(matrix.key.lower() == FILE_NAMES_KEY for matrix in list_matrices(*files)):
        pairs = replace(pairs, ids=np.array([_image_name(name) for name in pairs.ids]))
    if labels.shape[1] == len(TOPICS):
        pairs = replace(pairs, class_names=TOPICS)
        notes += ("the 24 label columns are assumed to be the topics of MIRFLICKR-25K in alphabetical order",)
    if split is not None:
        notes += ("the parts of the files were joined, and a new split is drawn",)
    return Source(pairs, notes=notes, inputs=tuple(files), canonical_id=_image_name)


def _image_name(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".jpg")


def _with_frequent_classes(source: Source, count: int | None) -> Source:
    """The same items with only the most frequent classes, in their order."""
    labels = np.asarray(source.pairs.labels)
    if count is None or count == labels.shape[1]:
        return source
    if labels.shape[1] < count:
        found = f"{source.pairs.source} has {labels.shape[1]} classes"
        raise DataError(f"{found}, but the split uses the {count} most frequent ones; use another split.")
    chosen = np.sort(np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")[:count])
    names = tuple(source.pairs.class_names[c] for c in chosen)
    note = f"the {count} most frequent of {labels.shape[1]} classes are {', '.join(names)}"
    pairs = replace(source.pairs, labels=labels[:, chosen], class_names=names)
    return replace(source, pairs=pairs, notes=(*source.notes, note))


def _with_features(source: Source, rows: IntArray, files: Mapping[Role, str | None]) -> tuple[Pairs, list[str]]:
    """The given rows, with features from files instead of the published images or texts."""
    pairs, notes = source.pairs.take(rows), []
    for role, text in files.items():
        if text is not None:
            column, note = read_features(text, role, source.pairs.ids, wanted=rows, canonical_id=source.canonical_id)
            mask = "has_image" if role == "images" else "has_text"
            pairs = replace(pairs, **{role: column, mask: None})  # type: ignore[arg-type]
            notes.append(note)
    return pairs, notes


def _width_notes(pairs: Pairs, benchmark: Benchmark, *, strict: bool) -> list[str]:
    """Notes on inputs that are not as wide as the paper's; with ``strict`` the first is an error."""
    notes = []
    for what, column, width in (("images", pairs.images, IMAGE_WIDTH), ("texts", pairs.texts, benchmark.text_width)):
        found = "missing" if column is None else "raw" if is_raw(column) else f"{column.shape[1]:,} wide"
        if found != f"{width:,} wide":
            notes.append(f"the {what} are {found}; the paper's features are {width:,} wide")
    if strict and notes:
        raise DataError(f"{pairs.source}: {notes[0]}. Give such features, or omit --paper-inputs.")
    return notes


def draw_split(
    protocol: Protocol,
    labels: LabelArray,
    *,
    usable: BitArray,
    part: NDArray[np.str_] | None = None,
    seed: int = 0,
    stratified: bool = False,
) -> Split:
    """Draw the queries, then the database from the rest, then the training rows from the database.

    Only ``usable`` rows (n,) are drawn. ``part`` (n,) is the published part of each row, if the protocol names parts.
    A ``stratified`` split keeps the share of each class.
    """
    of_database = of_query = np.flatnonzero(usable)
    if protocol.parts is not None:
        if part is None:
            parts = ", ".join(protocol.parts)
            raise DataError(
                f"The split {protocol.name!r} needs the published parts ({parts}); give the published files, or use "
                "another split."
            )
        of_database, of_query = (np.flatnonzero(usable & (part == name)) for name in protocol.parts)
    candidates = of_query[labels[of_query].any(axis=1)]
    queries = protocol.queries or max(1, len(candidates) // 10)
    needed = max(protocol.database or 1, protocol.train or 1)
    if len(candidates) < queries or len(of_database) - (0 if protocol.parts else queries) < needed:
        found = f"there are {len(candidates):,} and {len(of_database):,} pairs to draw from"
        raise DataError(
            f"The split {protocol.name!r} needs {queries:,} queries and {needed:,} other pairs, but {found}; give the "
            "whole data set, or use the split 'tenth'."
        )
    rng = np.random.default_rng(seed)

    def pick(rows: IntArray, count: int) -> IntArray:
        if protocol.in_order:
            return rows[:count]
        if stratified:
            return stratified_rows(rows, count, labels=labels, rng=rng)
        return np.sort(rng.choice(rows, count, replace=False))

    query = pick(candidates, queries)
    rest = np.setdiff1d(of_database, query)
    database = rest if protocol.database is None else pick(rest, protocol.database)
    train = database if protocol.train is None else pick(database, protocol.train)
    return Split(protocol.name + ("-stratified" if stratified else ""), database, query, train)


def stratified_rows(rows: IntArray, count: int, *, labels: LabelArray, rng: np.random.Generator) -> IntArray:
    """Draw rows in proportion to each stratum; the largest remainders are rounded up.

    The stratum of a row is its least frequent label, so that rare classes keep their share; -1 without labels.
    """
    frequency = labels.sum(axis=0, dtype=np.int64)
    rarest = np.where(labels, frequency, len(labels) + 1).argmin(axis=1)
    stratum = np.where(labels.any(axis=1), rarest, -1)
    strata, member, sizes = np.unique(stratum[rows], return_inverse=True, return_counts=True)
    shares = sizes * count / len(rows)
    quota = np.floor(shares).astype(np.int64)
    quota[np.argsort(quota - shares, kind="stable")[: count - quota.sum()]] += 1
    drawn = [rng.choice(rows[member == s], quota[s], replace=False) for s in range(len(strata))]
    return np.sort(np.concatenate(drawn))
