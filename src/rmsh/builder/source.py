"""The items of a build: read, labelled from the data or from its texts, and given a text where none has one.

Features of the items of a build; a picture that cannot be read costs its item the picture, and is written down.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.builder.stages import digest
from rmsh.core.errors import DataError
from rmsh.core.files import sha256
from rmsh.core.progress import OnProgress, ignore
from rmsh.data.labels import label_texts, mine_classes, read_classes, write_classes
from rmsh.data.open import open_pairs
from rmsh.data.readers.folder import read_credit
from rmsh.data.records import Skipped, refuse_skipped
from rmsh.features.extract import encode_pairs
from rmsh.methods import method_class

if TYPE_CHECKING:
    from rmsh.builder.build import BuildConfig
    from rmsh.core.types import Modality
    from rmsh.data.labels import Classes
    from rmsh.data.pairs import Pairs
    from rmsh.data.records import Origin
    from rmsh.features.base import Encoder
    from rmsh.methods.base import Method

CLASSES = "classes.txt"
_MOST_SHOWN = 12  # classes in a note


@dataclass(frozen=True, eq=False)
class Source:
    """Items with raw pictures and texts, and labels.

    Args:
        pairs: the items.
        origin: where they are from and what was left out, one record an item of ``pairs``.
        notes: what was guessed, for the user to read.
        name: a short name of the data.
        classes: where labels were found in the texts, the words that stand for each.
    """

    pairs: Pairs
    origin: Origin
    notes: tuple[str, ...]
    name: str
    classes: Classes | None = None

    @property
    def credit(self) -> str:
        """Whom to thank for the pictures, from a CREDIT.txt among them; "" where there is none."""
        return read_credit(self.origin.folder)

    def key(self) -> str:
        """Names all that a build makes of the items: another one when a row, a label or a picture file changes."""
        facts = [
            (record.id, record.picture, _stamp(self.origin.folder, record.picture)) for record in self.origin.records
        ]
        texts = None if self.pairs.texts is None else np.asarray(self.pairs.texts).tolist()
        return digest(str(self.origin.folder.resolve()), facts, texts, _labels_key(self.pairs))


def _stamp(folder: Path, picture: str | None) -> list[int] | None:
    """Size and time of a picture's file."""
    if picture is None:
        return None
    try:
        status = os.stat(folder / picture)
    except OSError:  # it went away since it was read; its encoder will say so
        return None
    return [status.st_size, status.st_mtime_ns]


def _labels_key(pairs: Pairs) -> list[object]:
    return [list(pairs.class_names), None if pairs.labels is None else np.packbits(pairs.labels).tobytes().hex()]


def read_source(data: str | Path, config: BuildConfig, *, work: Path) -> Source:
    """Read the items of a build.

    Args:
        data: what :func:`rmsh.open_pairs` opens, with raw pictures and texts.
        config: where labels are from, and whether to stop over what is left out.
        work: the folder for the file of mined classes.

    Raises:
        DataError: the data is not raw, or has neither texts nor labels, or strict was asked for.
    """
    source = with_texts(_labelled(read_raw(data, strict=config.strict), config.labels_from, work / CLASSES))
    _check_labels(source.pairs, method_class(config.method))
    return source


def read_raw(data: str | Path, *, strict: bool) -> Source:
    """Read items as they are, with the labels and texts that they have.

    Raises:
        DataError: the data is not raw, or strict was asked for and something would be left out.
    """
    opened = open_pairs(data)
    if opened.origin is None:
        raise DataError(
            f"{data} holds features, and libraries are made of pictures and texts; give a folder of pictures, or use "
            "`rmsh train` for features."
        )
    if strict:
        refuse_skipped(opened.origin.skipped, opened.name)
    return Source(opened.pairs, opened.origin, opened.notes, opened.name)


def _labelled(source: Source, labels_from: str | None, file: Path) -> Source:
    pairs = source.pairs
    if labels_from == "data" or (labels_from is None and pairs.labels is not None):
        if pairs.labels is None:
            raise DataError(f"{source.name}: no item has a label; give some, or mine them with --labels-from text.")
        return source
    if pairs.texts is None:
        raise DataError(
            f"{source.name}: no item has a label or a text to mine some from, so that nothing says what the pictures "
            "show; add a metadata.csv with a column 'text' or 'labels', a .txt beside each picture, or one folder a "
            "class."
        )
    if labels_from in (None, "text"):
        return _mined(source, file)
    if not Path(labels_from).is_file():
        raise DataError(
            f"Labels were to be from {labels_from!r}, which is no file; give data, text or a file of classes."
        )
    classes = read_classes(Path(labels_from))
    return with_classes(source, classes, f"labels by the classes of {labels_from}: {_shown(classes)}")


def _mined(source: Source, file: Path) -> Source:
    """Mine classes into a file; one that somebody edited is used as it is."""
    written = file.with_name(f".{file.name}.sha256")
    edited = file.is_file() and (not written.is_file() or written.read_text() != sha256(file))
    if edited:
        classes = read_classes(file)
        return with_classes(source, classes, f"labels by your classes in {file}: {_shown(classes)}")
    classes = mine_classes(np.asarray(source.pairs.texts)[source.pairs.has_text].tolist())
    labelled = with_classes(
        source,
        classes,
        f"no labels were given; the texts' most frequent words are the classes: {_shown(classes)}",
        f"to change them, edit {file} and build again",
    )
    write_classes(file, classes, np.asarray(labelled.pairs.labels))
    written.write_text(sha256(file))
    return labelled


def with_classes(source: Source, classes: Classes, *notes: str) -> Source:
    """The same items, with labels that are found in their texts; an item without a text has none."""
    pairs = source.pairs
    texts = [""] * len(pairs) if pairs.texts is None else np.asarray(pairs.texts).tolist()
    labelled = replace(pairs, labels=label_texts(texts, classes), class_names=tuple(classes))
    return replace(source, pairs=labelled, notes=(*source.notes, *notes), classes=classes)


def _shown(classes: Classes) -> str:
    names = [*classes]
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def with_texts(source: Source) -> Source:
    """Where no item has a text, its labels are its text, so that words find pictures all the same."""
    pairs, origin = source.pairs, source.origin
    if pairs.texts is not None or not pairs.labelled.any():
        return source
    texts = [", ".join(record.labels) for record in origin.records]
    records = (replace(record, text=text or None) for record, text in zip(origin.records, texts, strict=True))
    return replace(
        source,
        pairs=replace(pairs, texts=np.array(texts), has_text=pairs.labelled),
        origin=replace(origin, records=tuple(records)),
        notes=(*source.notes, "no item has a text; the names of an item's labels are taken as its text"),
    )


def _check_labels(pairs: Pairs, method: type[Method]) -> None:
    """Refuse labels that say nothing, before anything takes long."""
    labels = np.asarray(pairs.labels)[method.learns_from(pairs)]
    if len(np.unique(labels, axis=0)) == 1:
        names = ", ".join(np.array(pairs.class_names)[labels[0] != 0])
        raise DataError(
            f"{pairs.source}: all {len(labels)} items have the same labels ({names}), from which no difference can be "
            "learned; give labels that differ, or mine them with --labels-from text."
        )


def encode_source(
    source: Source,
    encoders: Mapping[Modality, Encoder],
    *,
    cache: Path,
    strict: bool = False,
    on_progress: OnProgress = ignore,
) -> Source:
    """Replace images and texts by features; items of which nothing is left are removed, and listed as skipped.

    Raises:
        DataError: an image cannot be read, and ``strict`` is set.
    """
    found: list[Skipped] = []
    pairs = encode_pairs(source.pairs, encoders, cache=cache, on_skipped=found.extend, on_progress=on_progress)
    origin, record_of = source.origin, {record.id: record for record in source.origin.records}
    skipped = [replace(one, file=record_of[one.id].file, row=record_of[one.id].row) for one in found]
    if strict:
        refuse_skipped(skipped, source.name)
    without_image = {one.id for one in skipped}
    keep = np.flatnonzero(pairs.has_image | pairs.has_text)
    records = tuple(
        replace(record, picture=None) if record.id in without_image else record
        for record in (origin.records[row] for row in keep.tolist())
    )
    left = pairs if len(keep) == len(pairs) else pairs.take(keep)
    return replace(source, pairs=left, origin=replace(origin, records=records, skipped=(*origin.skipped, *skipped)))
