"""The codes file: codes of pictures and texts with their labels and split, as `rmsh encode` writes them.

One npz without pickles. ``format`` and ``version`` come first in any reading; then ``bits``, ``ids``, ``image`` and
``text`` (packed, see codes.py), ``has_image`` and ``has_text``, ``labels`` (packed, see data/labels.py), ``classes``,
``split`` and ``model``. What is absent has no key.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, ConfigError, DataError, FormatError, InputError
from rmsh.core.files import atomic
from rmsh.core.types import MODALITIES
from rmsh.data.labels import pack_labels, unpack_labels
from rmsh.data.pairs import checked_labels, checked_mask, checked_names
from rmsh.data.readers.foreign_codes import find_labels
from rmsh.metrics.directions import default_directions, select_direction
from rmsh.metrics.relevance import LabelledCodes
from rmsh.retrieval_set import RetrievalSet, draw_queries, refuse_drawing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, Direction, IdArray, LabelArray, Modality, PackedArray

__all__ = ["FORMAT", "VERSION", "CodesFile", "is_codes_file", "read_own_set"]

FORMAT, VERSION = "rmsh-codes", 1
_ROLES = ("database", "query", "")  # "" is in neither part


@dataclass(frozen=True, eq=False)
class CodesFile:
    """Codes of n items in both modalities, or in one.

    Args:
        ids: (n,) unique strings.
        bits: the length of a code.
        image: packed codes of the pictures, uint8 (n, ceil(bits / 8)), or None.
        text: packed codes of the texts, or None.
        has_image: (n,) which items have a picture; the others' codes mean nothing. All, where not given.
        has_text: (n,) which items have a text.
        labels: 0/1 (n, classes), or None.
        classes: one name a class.
        split: (n,) "database", "query" or "" (neither) for each item, or None.
        model: the fingerprint of the model that made the codes; "" where it is not known.

    Raises:
        CodesError: there are no codes, or they do not fit their length or the ids.
        DataError: labels, classes or split do not fit the items.
    """

    ids: IdArray
    bits: int
    image: PackedArray | None = None
    text: PackedArray | None = None
    has_image: BitArray = None  # type: ignore[assignment]  # filled in by __post_init__
    has_text: BitArray = None  # type: ignore[assignment]
    labels: LabelArray | None = None
    classes: tuple[str, ...] = ()
    split: NDArray[np.str_] | None = None
    model: str = ""

    def __post_init__(self) -> None:
        given = {m: packed for m in MODALITIES if (packed := getattr(self, m)) is not None}
        if not given:
            raise CodesError("Neither image nor text codes were given; a codes file holds at least one of them.")
        coded = {m: Codes(packed, self.bits, self.ids) for m, packed in given.items()}
        first = next(iter(coded.values()))
        checked: dict[str, Any] = {"ids": first.ids, "bits": first.bits}
        checked |= {m: codes.packed for m, codes in coded.items()}
        for m in MODALITIES:
            checked[f"has_{m}"] = checked_mask(getattr(self, f"has_{m}"), m in given, len(first), f"codes: has_{m}")
        checked["labels"] = None if self.labels is None else checked_labels(self.labels, len(first), "codes")
        checked["classes"] = checked_names(self.classes, checked["labels"], "codes")
        checked["split"] = None if self.split is None else _checked_split(self.split, len(first))
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.ids)

    def codes(self, modality: Modality) -> Codes:
        """The codes of the items that have this modality.

        Raises:
            CodesError: the modality was not coded.
        """
        packed = self.image if modality == "image" else self.text
        if packed is None:
            raise CodesError(f"There are no {modality} codes here; code the {modality}s as well.")
        return Codes(packed, self.bits, self.ids).take(getattr(self, f"has_{modality}"))

    def part(self, role: str) -> dict[Modality, LabelledCodes]:
        """The labelled codes of the queries or of the database, by modality.

        Raises:
            DataError: the file has no labels, no split, or no item in this part.
        """
        if self.labels is None:
            raise DataError("The codes have no labels, and scores need them; give a file of labels (--labels).")
        if self.split is None:
            raise DataError(
                "The codes have no split into queries and database; code data that has one, or let `rmsh audit` draw "
                "queries."
            )
        inside = self.split == role
        if not inside.any():
            raise DataError(f"The split of the codes has no {role} items; scores need queries and a database.")
        rows = {m: inside & getattr(self, f"has_{m}") for m in MODALITIES if getattr(self, m) is not None}
        return {
            m: LabelledCodes(Codes(getattr(self, m)[r], self.bits, self.ids[r]), self.labels[r])
            for m, r in rows.items()
        }

    def with_labels(self, labels: LabelArray, ids: IdArray | None = None) -> CodesFile:
        """The same codes with other labels, matched by id, or row by row where there are no ids.

        Raises:
            DataError: an item has no row of labels.
        """
        if ids is None:
            return replace(self, labels=labels, classes=())
        row_of = {str(name): row for row, name in enumerate(ids)}
        missing = [str(name) for name in self.ids if str(name) not in row_of]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(self)} items have no labels, such as {missing[0]!r}; give labels for every id."
            )
        return replace(self, labels=labels[[row_of[str(name)] for name in self.ids]], classes=())

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value for name, value in arrays.items() if value is not None}
        if self.labels is not None:
            arrays["labels"] = pack_labels(self.labels)
        with atomic(path) as file:
            np.savez(file, format=np.str_(FORMAT), version=np.int64(VERSION), **arrays)

    @classmethod
    def load(cls, path: Path) -> CodesFile:
        """Read a codes file.

        Raises:
            InputError: there is no such file.
            FormatError: the file is not a codes file, is damaged, or was written by a newer rmsh.
        """
        arrays = _read(path)
        try:
            version = int(arrays.pop("version"))
            if version > VERSION:
                raise FormatError(
                    f"{path} is a codes file of version {version}, this rmsh reads up to version {VERSION}; update it."
                )
            return cls(**_restored(arrays))
        except (InputError, TypeError, ValueError, KeyError) as error:
            raise FormatError(f"{path} is damaged ({error}); write it anew with `rmsh encode`.") from error


def is_codes_file(path: Path) -> bool:
    """Whether a file is ours, of whatever version."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {"format.npy", "version.npy", "bits.npy", "ids.npy"} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def read_own_set(
    codes: Path,
    labels: Path | None = None,
    *,
    direction: Direction | None = None,
    queries: int | None = None,
    **foreign: object,
) -> RetrievalSet:
    """Queries and database of one direction of a codes file; where it has no split, queries are drawn.

    Args:
        codes: a codes file.
        labels: a file with labels, in place of its own.
        direction: across the modalities, pictures asking, where not given.
        queries: how many to draw; a tenth, at most 1,000, where not given.
        foreign: what only files of other programs need, such as ``bits``.

    Raises:
        DataError: there are no labels, or not enough items.
        CodesError: codes of a modality are missing.
        ConfigError: queries are to be drawn and the file has some, or something is given that it holds itself.
    """
    needless = [name for name, value in foreign.items() if value is not None]
    if needless:
        raise ConfigError(f"{codes} is a codes file, which says itself what {', '.join(needless)} would; leave it out.")
    coded, notes = CodesFile.load(codes), [f"{codes} is a codes file"]
    if labels is not None:
        known = find_labels(labels)
        coded = coded.with_labels(known.of("all"), known.ids)
        notes += known.notes
    if coded.split is None:
        coded, note = _with_drawn_queries(coded, queries)
        notes.append(note)
    else:
        refuse_drawing(queries)
    query, database = coded.part("query"), coded.part("database")
    chosen = direction or default_directions(query, database)[0]
    return RetrievalSet(*select_direction(query, database, chosen), notes=(*notes, f"the direction is {chosen}"))


def _with_drawn_queries(coded: CodesFile, queries: int | None) -> tuple[CodesFile, str]:
    drawn, note = draw_queries(len(coded), queries)
    roles = np.full(len(coded), "database")
    roles[drawn.query] = "query"
    return replace(coded, split=roles), note


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path} is not a file; give a codes file, as `rmsh encode` writes it.")
    try:
        # np.load takes any file and leaves a damaged archive open; zipfile refuses what is no archive
        with zipfile.ZipFile(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive.items())
    except Exception as error:  # over a damaged archive, parsers raise almost anything
        raise FormatError(f"{path} cannot be read as a codes file ({error}); write it anew.") from error
    if str(arrays.pop("format", "")) != FORMAT or "version" not in arrays:
        raise FormatError(f"{path} is an npz of another program; `rmsh audit` reads codes whoever wrote them.")
    return arrays


def _restored(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of CodesFile from the arrays of a file."""
    values = {**arrays, "bits": int(arrays["bits"]), "model": str(arrays["model"])}
    values["classes"] = tuple(str(name) for name in arrays["classes"])
    if "labels" in arrays:
        values["labels"] = unpack_labels(arrays["labels"], len(values["classes"]))
    return values


def _checked_split(split: Any, n: int) -> NDArray[np.str_]:
    array = np.asarray(split, dtype=np.str_)
    unknown = sorted({str(role) for role in np.unique(array)} - set(_ROLES))
    if array.shape != (n,) or unknown:
        found = f"the roles {', '.join(unknown)}" if unknown else f"{array.size} roles for {n} items"
        raise DataError(f'The split has {found}; give "database", "query" or "" for each item.')
    return array
