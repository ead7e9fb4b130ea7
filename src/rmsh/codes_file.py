"""The codes file: codes of images and texts with their labels and split, as written by `rmsh encode`.

One npz without pickles: ``format``, ``version``, ``bits``, ``ids``, ``image`` and ``text`` (packed, see codes.py),
``has_image`` and ``has_text``, ``labels`` (packed, see data/labels.py), ``classes``, ``split``, ``trained`` (since
version 2) and ``model``. Absent arrays have no key.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes, check_unique_ids
from rmsh.core.errors import CodesError, DataError, FormatError, InputError
from rmsh.core.files import atomic, checked_format, open_regular
from rmsh.core.types import MODALITIES, BitArray, IdArray, LabelArray, Modality, PackedArray
from rmsh.data.labels import pack_labels, unpack_labels
from rmsh.data.pairs import checked_labels, checked_mask, checked_names
from rmsh.data.readers.matrix_files import list_matrices, read_matrix
from rmsh.metrics.histogram import LabelledCodes

if TYPE_CHECKING:
    from numpy.typing import NDArray


FORMAT, VERSION = "rmsh-codes", 2
_ROLES = ("database", "query", "")  # "" is neither


@dataclass(frozen=True, eq=False)
class CodesFile:
    """Codes of n items in one modality or both; a CodesError or DataError says which arrays do not match."""

    ids: IdArray  # (n,) unique strings
    bits: int
    image: PackedArray | None = None  # packed codes of the images, uint8 (n, ceil(bits / 8))
    text: PackedArray | None = None  # packed codes of the texts
    # (n,) which items have an image or a text, by default all; the codes of the others are meaningless
    has_image: BitArray = None  # type: ignore[assignment]  # filled in by __post_init__
    has_text: BitArray = None  # type: ignore[assignment]
    labels: LabelArray | None = None  # 0/1 (n, classes)
    classes: tuple[str, ...] = ()  # one name per class
    split: NDArray[np.str_] | None = None  # (n,) "database", "query" or "" (neither) for each item
    trained: BitArray | None = None  # (n,) which items the model was trained on; None if unknown
    model: str = ""  # fingerprint of the model that made the codes; "" if unknown

    def __post_init__(self) -> None:
        coded = {m: Codes(packed, self.bits, self.ids) for m in MODALITIES if (packed := getattr(self, m)) is not None}
        if not coded:
            raise CodesError("There are neither image nor text codes; a codes file contains at least one of them.")
        first = next(iter(coded.values()))
        ids, n = first.ids, len(first)
        check_unique_ids(ids)
        checked: dict[str, Any] = {"ids": ids, "bits": first.bits}
        checked |= {m: codes.packed for m, codes in coded.items()}
        for m in MODALITIES:
            checked[f"has_{m}"] = checked_mask(getattr(self, f"has_{m}"), m in coded, n, f"codes: has_{m}")
        checked["labels"] = None if self.labels is None else checked_labels(self.labels, n, "codes")
        checked["classes"] = checked_names(self.classes, checked["labels"], "codes")
        if self.trained is not None:
            checked["trained"] = checked_mask(self.trained, True, n, "codes: trained")
        if self.split is not None:
            checked["split"] = split = np.asarray(self.split, dtype=np.str_)
            unknown = sorted({str(role) for role in np.unique(split)} - set(_ROLES))
            if split.shape != ids.shape or unknown:
                received = f"the roles {', '.join(unknown)}" if unknown else f"{split.size} roles for {n} items"
                raise DataError(f'The split has {received}; give "database", "query" or "" for each item.')
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, role: str) -> dict[Modality, LabelledCodes]:
        """The labelled codes of the queries or of the database, by modality."""
        if self.labels is None:
            raise DataError("The codes have no labels, which scores need; encode data with labels.")
        if self.split is None:
            how = "hold queries out with `rmsh train --queries N`, or draw some with `rmsh audit`"
            raise DataError(f"The codes have no split; {how}.")
        inside = self.split == role
        if not inside.any():
            raise DataError(f"The split of the codes has no {role} items; scores need queries and a database.")
        rows = {m: inside & getattr(self, f"has_{m}") for m in MODALITIES if getattr(self, m) is not None}
        return {
            m: LabelledCodes(Codes(getattr(self, m)[r], self.bits, self.ids[r]), self.labels[r])
            for m, r in rows.items()
        }

    def leak(self) -> tuple[str, ...]:
        """A warning if the model was trained on queries."""
        if self.trained is None or self.split is None or not (leaked := self.trained & (self.split == "query")).any():
            return ()
        found = f"the model was trained on {leaked.sum():,} of the {(self.split == 'query').sum():,} queries"
        return (f"Warning: {found}; it scores lower on new items. `rmsh train --queries N` holds queries out.",)

    def save(self, path: Path) -> None:
        """Write the file atomically."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value for name, value in arrays.items() if value is not None}
        if self.labels is not None:
            arrays["labels"] = pack_labels(self.labels)
        with atomic(path) as file:
            np.savez(file, format=np.str_(FORMAT), version=np.int64(VERSION), **arrays)

    @classmethod
    def load(cls, path: Path) -> CodesFile:
        """Read a codes file, or raise FormatError if it is damaged, not ours, or written by a newer rmsh."""
        if not path.is_file():
            raise InputError(f"{path} is not a file; give a codes file written by `rmsh encode`.")
        try:
            arrays: dict[str, Any] = {matrix.key: read_matrix(matrix) for matrix in list_matrices(path)}
        except DataError as error:
            raise FormatError(f"{path} cannot be read as a codes file ({error}); recreate it.") from error
        found = {name: arrays.pop(name).tolist() for name in ("format", "version") if name in arrays}
        checked_format(found, path, name=FORMAT, version=VERSION, hint="`rmsh audit` reads codes of other programs")
        try:
            arrays |= {"bits": int(arrays["bits"]), "model": str(arrays["model"])}
            arrays["classes"] = tuple(str(name) for name in arrays["classes"])
            if "labels" in arrays:
                arrays["labels"] = unpack_labels(arrays["labels"], len(arrays["classes"]))
            return cls(**arrays)
        except (InputError, TypeError, ValueError, KeyError) as error:
            raise FormatError(f"{path} is damaged ({error}); recreate it with `rmsh encode`.") from error


def is_codes_file(path: Path) -> bool:
    """Whether rmsh wrote this file as a codes file, of any version."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return {"format.npy", "version.npy", "bits.npy", "ids.npy"} <= set(archive.namelist())
    except (OSError, DataError, zipfile.BadZipFile):
        return False
