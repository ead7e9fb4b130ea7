"""Checking every part of a library for damage.

The checksum of a row is computed when the row is written, and the snapshot is only ever written from rows that match
their checksums. Where the two differ, a row that matches its checksum is right; otherwise the snapshot is right, if it
matches its own checksums.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import DataError, FormatError, RmshError
from rmsh.core.files import open_regular
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.core.types import MODALITIES, Modality
from rmsh.data.pairs import listed
from rmsh.data.records import locate
from rmsh.features.decoding import processors
from rmsh.features.images import read_photo
from rmsh.library import queries
from rmsh.library.database import connect_reader, connect_writer, primary_code, read_acknowledged, translate_errors
from rmsh.library.folder import check_is_library, find_model, image_folders, read_manifest
from rmsh.library.photos import damaged_photos, has_photos
from rmsh.library.schema import RESTORE, check_version, is_code_row_intact
from rmsh.library.snapshot import open_snapshot
from rmsh.library.views import View, Views
from rmsh.model import load

_MAX_REPORTED = 10  # problems of one kind
_BLOCK = 1 << 14  # items in memory at once


@dataclass(frozen=True)
class Verification:
    """The checks that were made, a message for each problem found, and IDs of items whose image files have one."""

    checked: tuple[str, ...]
    problems: tuple[str, ...]
    images: Mapping[str, Sequence[str]] = field(default_factory=dict)  # IDs by what is wrong, if images are checked


def verify(folder: Path, *, images: bool = False, on_progress: OnProgress = ignore) -> Verification:
    """Check every part of a library without changing it; FormatError if there is no library.

    With ``images``, all image files are read and compared with what the library knows about them.
    """
    check_is_library(folder)
    wrong: dict[str, list[str]] = {}
    checks: dict[str, Callable[[Path, sqlite3.Connection], Iterator[str]]] = {
        "database": _check_database,
        "full-text index": _check_texts,
        "log of changes": log_problems,
        "items, codes and snapshot": _check_rows,
        "labels": label_problems,
        "vectors": _check_vectors,
        "image files": _check_photos,
        "model": _check_model,
        "manifest": manifest_problems,
    }
    if not os.access(folder, os.W_OK):
        del checks["full-text index"]  # SQLite checks it over a writable connection only
    problems: list[str] = []
    try:
        read_manifest(folder)
        with translate_errors(folder), closing(connect_reader(folder)) as connection:
            check_version(connection, folder)
            connection.execute("BEGIN")
            for check in checks.values():
                try:
                    with translate_errors(folder):
                        problems += itertools.islice(check(folder, connection), _MAX_REPORTED + 1)
                except RmshError as error:
                    problems.append(str(error))
            if images:
                wrong = _check_images(connection, folder, on_progress)
    except RmshError as error:
        return Verification(("manifest and database",), (str(error),))
    problems += (
        f"{kind.capitalize()} image files ({len(ids):,}): {listed(ids)}; restore them, or run `rmsh sync`."
        for kind, ids in wrong.items()
        if ids
    )
    return Verification((*checks, *["images"] * images), tuple(dict.fromkeys(problems)), wrong)


def _check_database(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    for found in structure_problems(connection):
        yield f"The database of {folder} is damaged ({found}); {RESTORE}."
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"An entry of {table} has no {parent}; {RESTORE}."


def structure_problems(connection: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with its pages and indexes, one line each."""
    found = connection.execute(f"PRAGMA integrity_check({_MAX_REPORTED})")
    lines = [line for (text,) in found for line in text.splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def _check_texts(folder: Path, _connection: sqlite3.Connection) -> Iterator[str]:
    with closing(connect_writer(folder, timeout=30.0)) as connection:
        if not is_text_index_intact(connection):
            yield "The full-text index does not match the texts; `rmsh library compact` rebuilds it."


def is_text_index_intact(connection: sqlite3.Connection) -> bool:
    """Whether the full-text index matches the texts; needs a writable connection."""
    try:
        connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if primary_code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def _check_rows(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    damage = find_damage(folder, connection)
    yield from damage.messages[:_MAX_REPORTED]
    if damage.snapshot_problem:
        yield damage.snapshot_problem


def log_problems(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    """A message if acknowledged changes are lost, and one if an entry of the log is damaged or lost."""
    lost = queries.lost_changes(connection, read_acknowledged(folder))
    if lost is not None:
        yield f"The library {folder} has lost {lost}; {RESTORE}, or accept the loss with `rmsh library repair`."
    (first,) = connection.execute("SELECT min(seq) FROM changes").fetchone()
    try:
        queries.changes_since(connection, (first or 1) - 1)
    except FormatError as error:
        yield str(error)


def label_problems(_folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    """A message if a label, or the list of its rows, is damaged."""
    try:
        for label in queries.labels_by_name(connection).values():
            for _ in queries.rows_of_label(connection, label):
                pass
    except FormatError as error:
        yield str(error)


def _check_vectors(_folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    for row in sorted({row for row, _ in damaged_vectors(connection)}):
        yield queries.damage_message(connection, row, "vectors")


def damaged_vectors(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Row and generation of vectors that are lost, or do not match the checksum that their codes include."""
    found = connection.execute(
        "SELECT row, generation, found.image, found.text, found.checksum, codes.vectors FROM codes "
        "LEFT JOIN vectors AS found USING (row, generation) WHERE codes.vectors IS NOT NULL"
    )
    return [
        (row, generation)
        for row, generation, image, text, stored, checksum in found
        if stored != checksum or not is_code_row_intact(row, generation, image, text, None, checksum)
    ]


def _check_photos(_folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    for row in damaged_photos(connection):
        yield f"What is known of the image file of row {row} is damaged; run `rmsh library repair`, then `rmsh sync`."


def _check_images(connection: sqlite3.Connection, library: Path, on_progress: OnProgress) -> dict[str, list[str]]:
    """IDs of the items whose image files are missing, are not as the library read them, or cannot be read."""
    others = image_folders(connection, library)
    folder = others.pop("", library)
    known = dict(connection.execute("SELECT row, hash FROM photos")) if has_photos(connection) else {}

    def problem(row: int, picture: str) -> str | None:
        root, path = locate(picture, folder, others)
        try:
            with open_regular(path, inside=root) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == known.get(row):
                    return None
            read_photo(path)
        except (FileNotFoundError, NotADirectoryError):
            return "missing"
        except (DataError, OSError):
            return "unreadable"
        return "changed" if row in known else None

    items = connection.execute("SELECT row, id, picture FROM items WHERE picture IS NOT NULL").fetchall()
    found: dict[str, list[str]] = {"missing": [], "changed": [], "unreadable": []}
    report = counter(on_progress, "check images", len(items), "file")
    with ThreadPoolExecutor(processors(), thread_name_prefix="rmsh-images") as pool:
        problems = pool.map(problem, (row for row, _, _ in items), (picture for _, _, picture in items))
        for count, ((_, name, _), kind) in enumerate(zip(items, problems, strict=True), start=1):
            if kind is not None:
                found[kind].append(name)
            report(count)
    return found


def _check_model(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    generation = queries.generation_of(connection)
    bits = load(find_model(folder, generation)).bits
    if bits != generation.bits:
        yield f"The model has {bits} bits, the codes of the library {generation.bits}; {RESTORE}."


def manifest_problems(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    """A message if the manifest does not match the database."""
    manifest = read_manifest(folder)
    # The manifest may name an older model if recoding was interrupted; the next writer completes it.
    select = "SELECT fingerprint, bits FROM generations WHERE generation <= (SELECT generation FROM library)"
    known = connection.execute(select).fetchall()
    named = manifest.get("model"), manifest.get("bits")
    if manifest.get("id") != queries.facts_of(connection).id or named not in known:
        yield f"manifest.json of {folder} does not match the database; `rmsh library upgrade` rewrites it."


@dataclass(frozen=True, eq=False)
class Damage:
    """The damaged rows of a library."""

    messages: tuple[str, ...]  # about the database, one per damaged or missing item and row of codes
    items: Collection[int]  # rows whose item is damaged or missing
    codes: Collection[tuple[int, int]]  # row and generation of codes that are damaged or missing
    views: Mapping[Modality, View]  # from the snapshot, if it is intact
    snapshot_problem: str | None  # a message if the snapshot is damaged, or differs from intact rows

    def packed(self, row: int) -> tuple[bytes | None, ...]:
        """The image code and the text code of a row as the database stores them, from the snapshot, or None."""
        found = [(view.locate(np.array([row])), -(-view.generation.bits // 8)) for view in self.views.values()]
        return tuple(
            words[0].astype("<u8").tobytes()[:width] if places[0] >= 0 else None for (places, words), width in found
        )


def find_damage(folder: Path, connection: sqlite3.Connection) -> Damage:
    """Compare every row with its checksum, and the snapshot with the database.

    Damage to the structure of the database raises sqlite3.DatabaseError.
    """
    views, problem = _read_snapshot(folder, connection)
    tables = "SELECT row FROM items UNION SELECT row FROM codes UNION SELECT row FROM item_labels"
    rows = [queries.rows_of(connection, tables), *(view.rows() for view in views.values())]
    mentioned = np.unique(np.concatenate(rows))
    items: dict[int, str] = {}
    for begin in range(0, len(mentioned), _BLOCK):
        items |= queries.intact_items(connection, mentioned[begin : begin + _BLOCK])[1]
    generations = connection.execute("SELECT generation, fingerprint, bits FROM generations")
    by_number = {each[0]: queries.Generation(*each) for each in generations}
    damaged = {
        each[:2]
        for each in connection.execute(queries.CODE_ROW)
        if isinstance(each[0], int) and (each[1] not in by_number or not by_number[each[1]].is_intact(each))
    }
    current = queries.generation_of(connection).number
    coded = queries.rows_of(connection, "SELECT row FROM codes WHERE generation = ?", current)
    damaged |= {(row, current) for row in np.setdiff1d(mentioned, coded, assume_unique=True).tolist()}
    messages = [*items.values()]
    messages += [queries.damage_message(connection, row, "codes") for row in sorted({row for row, _ in damaged})]
    return Damage(tuple(messages), items.keys(), damaged, views, problem)


def _read_snapshot(folder: Path, connection: sqlite3.Connection) -> tuple[dict[Modality, View], str | None]:
    """The codes of the snapshot with later changes, and a message if it is damaged or differs from intact rows."""
    try:
        snapshot = open_snapshot(folder, connection)
        if snapshot is None:
            return {}, None
        for modality in MODALITIES:
            snapshot.arrays(modality)
    except FormatError as error:
        return {}, f"{error}; searches use the database instead, and `rmsh library compact` rewrites it."
    newest = Views(folder)
    views = {modality: newest.at(connection, modality) for modality in MODALITIES}
    for modality, view in views.items():
        for rows, packed in queries.code_blocks(connection, modality, on_damage=lambda _: None):
            places, words = view.locate(rows)
            if (places < 0).any() or not np.array_equal(words, to_words(packed)):
                return views, (
                    f"The {modality} codes of the snapshot {snapshot.path} differ from the database, where they match "
                    "their checksums; `rmsh library compact` rewrites the snapshot."
                )
    return views, None
