"""Prepare a benchmark: read its published files, apply a protocol, draw the split, and write prepared pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from pyarrow import parquet
from scipy import sparse

from lab.benchmarks.declarations import BENCHMARKS, IMAGE_WIDTH, Benchmark, Protocol, find
from lab.benchmarks.matrices import matrix_files_below, read_features, read_matrices
from lab.benchmarks.published import Source, read_mirflickr25k, read_mscoco, read_nuswide
from lab.benchmarks.splits import draw_split
from lab.console import Seed  # noqa: TC001  # typer reads it
from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.core.files import atomic, sha256, write_json
from rmsh.data.open import ITEMS, MANIFEST, PREPARED, PREPARED_VERSION, RAW, SPLIT
from rmsh.data.pairs import Pairs, is_raw
from rmsh.data.splits import PARTS, Split

if TYPE_CHECKING:
    from rmsh.core.types import IntArray
    from rmsh.data.readers.matrix_files import Role

READERS = {"mirflickr25k": read_mirflickr25k, "nuswide": read_nuswide, "mscoco": read_mscoco}


def main(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="mirflickr25k, nuswide or mscoco.")] = None,
    *,
    root: Annotated[Path, typer.Option(help="Folder with the publisher's files, or with feature matrices.")] = Path(),
    out: Annotated[Path, typer.Option(help="Folder to write the pairs to.")] = Path("pairs"),
    split: Annotated[str, typer.Option(help="Split to draw.")] = "paper",
    seed: Seed = 0,
    stratified: Annotated[bool, typer.Option(help="Sample each class in proportion.")] = False,
    images: Annotated[str | None, typer.Option(metavar="FILE", help="Image features by ID.")] = None,
    texts: Annotated[str | None, typer.Option(metavar="FILE", help="Text features by ID.")] = None,
    without_images: Annotated[bool, typer.Option(help="Prepare without images and image features.")] = False,
    paper_inputs: Annotated[bool, typer.Option(help="Require features of the same width as in the paper.")] = False,
) -> None:
    """Write pairs that every command of rmsh opens; without NAME, print the benchmarks and their splits."""
    if name is None:
        for benchmark in BENCHMARKS.values():
            print("\n".join(benchmark.sentences))
        return
    options: dict[str, Any] = {"split": split, "seed": seed, "stratified": stratified, "images": images, "texts": texts}
    manifest = prepare(name, root, out=out, without_images=without_images, paper_inputs=paper_inputs, **options)
    for note in manifest["notes"]:
        print(note)
    parts = ", ".join(f"{part} {count:,}" for part, count in manifest["split"].items() if part != "name")
    print(f"{out}: {manifest['items']:,} pairs: {parts}; {SPLIT}: SHA-256 {manifest['splits'][SPLIT]}")


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
    _refuse_finished(out)
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


def _refuse_finished(folder: Path) -> None:
    if (folder / MANIFEST).exists():
        raise InputError(f"{folder} already contains prepared pairs; give another folder, or remove this one.")


def write_prepared(folder: Path, pairs: Pairs, split: Split, *, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write pairs and their split, and return the manifest: ``facts`` with counts and hashes."""
    _refuse_finished(folder)
    columns: dict[str, Any] = {"labels": pairs.labels, "images": pairs.images, "texts": pairs.texts}
    columns = {name: column for name, column in columns.items() if column is not None}
    raw = {RAW[name]: columns.pop(name) for name in RAW if name in columns and is_raw(columns[name])}
    items = {"id": pairs.ids, "has_image": pairs.has_image, "has_text": pairs.has_text, **raw}
    with atomic(folder / ITEMS) as file:
        parquet.write_table(pa.table({name: pa.array(column) for name, column in items.items()}), file)
    files = [ITEMS]
    for name, column in columns.items():
        files.append(f"{name}.npz" if sparse.issparse(column) else f"{name}.npy")
        with atomic(folder / files[-1]) as file:
            if sparse.issparse(column):
                sparse.save_npz(file, column)
            else:
                np.save(file, column, allow_pickle=False)
    manifest = {
        "format": PREPARED,
        "version": PREPARED_VERSION,
        **facts,
        "items": len(pairs),
        "class_names": list(pairs.class_names),
        "split": {"name": split.name, **{part: len(getattr(split, part)) for part in PARTS}},
        "splits": {SPLIT: split.save(folder / SPLIT, pairs.ids)},
        "files": {name: sha256(folder / name) for name in files},
    }
    write_json(folder / MANIFEST, manifest)
    return manifest
