"""Open data by a name or a path, whatever its form, and say what was guessed on the way.

Somebody's own data, whatever its form: a folder of pictures, one metadata file of it, or tar shards.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.cache import cache_folder
from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, ignore
from rmsh.data.benchmarks import coco66k
from rmsh.data.pairs import listed
from rmsh.data.readers import metadata
from rmsh.data.readers.feature_files import assemble, assemble_files, transposed_hint
from rmsh.data.readers.folder import is_picture_folder, read_folder
from rmsh.data.readers.matrices import SUFFIXES, matrix_files
from rmsh.data.readers.matrices import SUFFIXES as MATRIX_SUFFIXES
from rmsh.data.readers.matrix_roles import ROLES, Role, locate
from rmsh.data.readers.prepared import is_prepared, prepared_note, read_prepared
from rmsh.data.readers.tar_shards import read_webdataset, shards_in, shards_name
from rmsh.data.records import Origin, check_records, count_skipped, refuse_skipped, to_pairs
from rmsh.data.splits import Split, random_split
from rmsh.data.synthetic.generated import generate_pairs

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs


def is_own_data(path: Path) -> bool:
    """Whether a path is of these forms; a folder with files of matrices is not."""
    if not path.is_dir():
        return path.is_file() and path.suffix.lower() in (*metadata.SUFFIXES, ".tar")
    if any(file.suffix.lower() in MATRIX_SUFFIXES for file in path.iterdir()):
        return any((path / f"metadata{suffix}").is_file() for suffix in metadata.SUFFIXES)
    return bool(shards_in(path)) or is_picture_folder(path)


def read_own_data(path: Path, *, on_progress: OnProgress = ignore) -> tuple[Origin, list[str]]:
    """Read items with raw pictures and texts; the pictures of shards are unpacked into the cache.

    Returns:
        The records with what was left out of them, and notes on what was guessed.

    Raises:
        DataError: a file cannot be read.
    """
    shards = shards_in(path)
    if shards:
        unpacked = cache_folder() / "unpacked" / shards_name(shards)
        return read_webdataset(shards, into=unpacked, on_progress=on_progress)
    if path.is_dir():
        return read_folder(path)
    records, none, unused = metadata.read_metadata(path)
    kept, skipped = check_records(records, path.parent)
    notes = [
        f"{path.name}: {len(records):,} rows",
        *([f"columns that were not used: {', '.join(unused)}"] if unused else []),
    ]
    return Origin(path.parent, tuple(kept), (*none, *skipped)), notes


COCO66K_VARIABLE = "RMSH_COCO66K"
# role -> the fields of pairs that come and go with it
_FIELDS = {"images": ("images", "has_image"), "texts": ("texts", "has_text"), "labels": ("labels", "class_names")}


@dataclass(frozen=True, eq=False)
class Opened:
    """Data as it was found.

    Args:
        pairs: the items.
        split: the split that comes with the data, or None where it has none.
        notes: sentences about what was guessed and what was skipped, for the user to read.
        name: a short name of the data, such as "coco66k".
        origin: for somebody's own pictures and texts, where they lie and what was left out.
    """

    pairs: Pairs
    split: Split | None
    notes: tuple[str, ...]
    name: str
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if self.split is not None:
            self.split.check(len(self.pairs))


def open_pairs(
    spec: str | Path | None = None,
    *,
    images: str | Path | None = None,
    texts: str | Path | None = None,
    labels: str | Path | None = None,
    keys: Mapping[str, str] | None = None,
    skip: Collection[Role] = (),
    strict: bool = False,
) -> Opened:
    """Open pairs from somebody's own pictures and texts, from files of matrices, or a data set known by name.

    Args:
        spec: a folder of pictures with metadata.csv, .jsonl or .parquet, or with a .txt beside each picture; tar
            shards (.tar); a file of matrices (.npz, .npy, .mat, .h5, .hdf5), or a folder of such; "coco66k" (whose
            folder is in the environment variable RMSH_COCO66K), "coco66k:FOLDER", "generated" or "generated:N" (N
            items); None where the three options below say everything.
        images: a file, or "FILE:KEY", whose matrix is taken for the images in place of what ``spec`` has.
        texts: the same for the texts.
        labels: the same for the labels.
        keys: which key of ``spec`` is what, such as {"images": "XAll"}; what is not named is guessed.
        skip: what not to read of ``spec``, such as ("images",) where only labels are needed.
        strict: refuse items without labels, and items that cannot be read wholly, instead of counting them in a note.

    Returns:
        The pairs, their split if they have one, and notes.

    Raises:
        DataError: the message names the file, the key or the row, what was expected and what to do.

    Example:
        >>> opened = open_pairs("generated:40")
        >>> opened.name, len(opened.pairs), len(opened.split.query)
        ('generated', 40, 4)
    """
    given = {"images": images, "texts": texts, "labels": labels}
    files: dict[Role, str] = {role: str(value) for role, value in given.items() if value is not None}  # type: ignore[misc]
    _check_options(spec, keys or {}, skip)
    base = None if spec is None else _open_spec(str(spec), keys or {}, {*skip, *files})
    return _with_label_notes(_with_files(base, files), strict=strict)


def _check_options(spec: str | Path | None, keys: Mapping[str, str], skip: Collection[str]) -> None:
    unknown = sorted({*skip} - {*ROLES})
    if unknown:
        raise DataError(f"{unknown[0]!r} was to be skipped; what can be skipped is {', '.join(ROLES)}.")
    if keys and (spec is None or str(spec).partition(":")[0] in ("coco66k", "generated")):
        raise DataError(f"Keys were named ({', '.join(keys)}), but no file of matrices to find them in; give one.")


def _open_spec(spec: str, keys: Mapping[str, str], skip: Collection[Role]) -> Opened:
    name, _, argument = spec.partition(":")
    path = Path(spec)
    if name == "generated":
        return _generated(argument, skip)
    if name == "coco66k" or (path.is_dir() and coco66k.is_coco66k(path)):
        return _coco66k(_coco66k_folder(argument) if name == "coco66k" else path, skip)
    if path.is_dir() and is_prepared(path):
        return _prepared(path, skip)
    if is_own_data(path):
        return _own(path, keys, skip)
    _check_matrices(path)
    pairs, split, notes = assemble_files(matrix_files(path), keys, skip=skip, source=spec)
    return Opened(pairs, split, notes, path.resolve().name if path.is_dir() else path.stem)


def _check_matrices(path: Path) -> None:
    """Refuse what is neither a file of matrices nor a folder with some; all other forms were looked for before."""
    files = list(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    if any(file.suffix.lower() in SUFFIXES for file in files):
        return
    if path.is_dir():
        problem = "is a folder with neither pictures nor matrices in it"
    else:
        problem = "is a file of another kind" if files else "does not exist"
    raise DataError(
        f"{path} {problem}; give a folder of pictures, a .csv, .jsonl or .parquet file that names them, a .tar shard, "
        f"matrices ({', '.join(SUFFIXES)}), 'coco66k' or 'generated'."
    )


def _own(path: Path, keys: Mapping[str, str], skip: Collection[Role]) -> Opened:
    if keys:
        raise DataError(f"Keys were named ({', '.join(keys)}), but {path} is no file of matrices; leave them out.")
    origin, notes = read_own_data(path)
    if origin.skipped and not origin.records:
        raise DataError(
            f"{path} holds no item that can be used: {'; '.join(count_skipped(origin.skipped))}; mend them."
        )
    pairs = to_pairs(origin.records, folder=origin.folder, source=str(path))
    return Opened(_without(pairs, skip), None, (*notes, *count_skipped(origin.skipped)), path.resolve().stem, origin)


def _prepared(folder: Path, skip: Collection[Role]) -> Opened:
    pairs, split, manifest = read_prepared(folder, skip)
    return Opened(pairs, split, (prepared_note(manifest),), manifest["benchmark"])


def _generated(argument: str, skip: Collection[Role]) -> Opened:
    if argument and not (argument.isascii() and argument.isdigit() and int(argument) >= 10):
        raise DataError(f"'generated:{argument}' was given; write 'generated:N' with a number of items from 10 up.")
    pairs = generate_pairs(int(argument)) if argument else generate_pairs()
    split = random_split(len(pairs), len(pairs) // 10, name="generated")
    note = f"{len(pairs):,} pairs were generated; they are not real data"
    return Opened(_without(pairs, skip), split, (note,), "generated")


def _coco66k_folder(argument: str) -> Path:
    folder = argument or os.environ.get(COCO66K_VARIABLE)
    if not folder:
        raise DataError(
            f"The folder of coco66k is not known; set the environment variable {COCO66K_VARIABLE} to it, or write "
            "'coco66k:FOLDER'."
        )
    return Path(folder)


def _coco66k(folder: Path, skip: Collection[Role]) -> Opened:
    pairs, split = coco66k.read_coco66k(folder, image_features="images" not in skip)
    return Opened(_without(pairs, skip), split, (), "coco66k")


def _without(pairs: Pairs, skip: Collection[Role]) -> Pairs:
    dropped: dict[str, Any] = {name: None for role in skip for name in _FIELDS.get(role, ())}
    if "class_names" in dropped:
        dropped["class_names"] = ()
    return replace(pairs, **dropped)


def _with_files(base: Opened | None, files: Mapping[Role, str]) -> Opened:
    """Put the columns of explicitly named files in place of what was opened, if anything was."""
    if not files:
        if base is None:
            raise DataError("No data was named; give a file, a folder, 'coco66k' or 'generated', or files by role.")
        return base
    places = {role: locate(text, role) for role, text in files.items()}
    notes = tuple(f"{role} were taken from {place}" for role, place in places.items())
    pairs, more = assemble({role: (place,) for role, place in places.items()}, source=" + ".join(files.values()))
    if base is None:
        return Opened(pairs, None, notes + more, next(iter(places.values())).path.stem)
    n = len(base.pairs)
    if len(pairs) != n:
        raise DataError(
            f"{pairs.source}: {len(pairs)} rows were found, but {base.name} has {n} items; give one row an item, in "
            "the same order." + transposed_hint(places.values(), [n])
        )
    changed = {name: getattr(pairs, name) for role in files for name in _FIELDS[role]}
    return replace(base, pairs=replace(base.pairs, **changed), notes=base.notes + notes + more)


def _with_label_notes(opened: Opened, *, strict: bool) -> Opened:
    if strict and opened.origin is not None:
        refuse_skipped(opened.origin.skipped, opened.name)
    bare = np.flatnonzero(~opened.pairs.labelled)
    if strict and bare.size:
        raise DataError(
            f"{opened.name}: {bare.size} of {len(opened.pairs)} items have no label (rows {listed(bare)}); labels of "
            "all items are needed here. Remove these items, or allow items without labels."
        )
    if opened.pairs.labels is None or not bare.size:
        return opened
    note = f"{bare.size:,} of {len(opened.pairs):,} items have no label; supervised methods skip them"
    return replace(opened, notes=(*opened.notes, note))
