"""The items of a build: read with the facts of their files, labelled by the data or by words, and encoded.

Labels of the data are learned from. Classes found in the texts only serve as filters, and the pairs are learned from,
unless the method needs labels or the user wants otherwise. If there are no pairs, or few, nothing is learned, and the
bundled model is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from rmsh.builder.stages import digest
from rmsh.codes import MAX_BITS
from rmsh.core.config import Config
from rmsh.core.errors import DataError, FormatError
from rmsh.core.files import make_folder, open_regular, read_json, write_json
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.core.types import IntArray, Modality, Store
from rmsh.data.labels import Classes, label_texts, mine_classes
from rmsh.data.open import open_pairs
from rmsh.data.pairs import listed
from rmsh.data.records import Origin, Skipped, locate, refuse_skipped, to_pairs
from rmsh.features.decoding import processors
from rmsh.features.extract import encode_pairs, file_state
from rmsh.features.images import read_photo
from rmsh.features.photo import Photo
from rmsh.library import Item
from rmsh.library.photos import ImageFile
from rmsh.methods import DEFAULT_METHOD, method_class
from rmsh.pipeline import DEFAULT_ENCODERS

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder
    from rmsh.features.executors import Executor


Signal: TypeAlias = Literal["labels", "pairs", "nothing"]  # what a model learns from
Known: TypeAlias = Mapping[str, ImageFile] | Path  # image files as they were before, see :func:`read_files`

FILES = "files.json"
LEAST_ITEMS = 30  # with fewer complete items, none can be held out of training
_MOST_SHOWN = 12  # classes in a note


class BuildConfig(Config):
    """Options of :func:`rmsh.builder.build`."""

    method: str = Field(DEFAULT_METHOD, description="training method, see `rmsh methods`")
    bits: int | None = Field(None, ge=1, le=MAX_BITS, description="length of a code; None: the method's default")
    seed: int = Field(0, ge=0, description="random seed")
    labels_from: Literal["data", "folders", "text"] | None = Field(
        None, description="where labels come from; None: data, else text"
    )
    learn_from: Signal | None = Field(
        None, description="nothing: the bundled model; None: labels of the data, else the better of pairs and nothing"
    )
    image_encoder: str = Field(DEFAULT_ENCODERS["image"], description="encoder of images")
    text_encoder: str = Field(DEFAULT_ENCODERS["text"], description="encoder of texts")
    place: bool = Field(True, description="store where images were taken, if their metadata says so")
    store: Store = Field("codes+vectors", description="store codes alone, or also vectors, which rank better")
    strict: bool = Field(False, description="fail instead of skipping invalid items")
    options: Mapping[str, Any] = Field(default_factory=dict, description="further options of the method")

    @property
    def default_model(self) -> bool:
        """Whether the bundled model has the method, the options and the encoders that are asked for."""
        names = {"image": self.image_encoder, "text": self.text_encoder}
        return self.method == DEFAULT_METHOD and self.bits is None and not self.options and names == DEFAULT_ENCODERS


@dataclass(frozen=True, eq=False)
class Source:
    """Items with images, texts and labels, and where they come from."""

    pairs: Pairs
    origin: Origin  # one record for each item of ``pairs``
    notes: tuple[str, ...]  # what was guessed, for the user
    name: str
    classes: Classes | None = None  # if labels were found in the texts: the words of each class
    learn_from: Signal = "labels"
    named: bool = False  # whether the texts are the names of the labels
    files: Mapping[str, ImageFile] = field(default_factory=dict)  # by image path, those that can be read

    @property
    def judged(self) -> bool:
        """Whether labels tell how good a search is: words of the texts and names of folders do not."""
        return self.classes is None and not (self.origin.folder_labels and self.learn_from != "labels")

    def key(self) -> str:
        """Identifies the items: it changes with every row, text, label and image file."""
        folder, labels = self.origin.folder, self.pairs.labels
        files = [
            (record.id, record.picture, file_state(folder / record.picture) if record.picture else None)
            for record in self.origin.records
        ]
        texts = None if self.pairs.texts is None else np.asarray(self.pairs.texts).tolist()
        packed = None if labels is None else np.packbits(labels).tobytes().hex()
        return digest(str(folder.resolve()), files, texts, [list(self.pairs.class_names), packed])

    def item(self, row: int, *, prefix: str = "") -> Item:
        """The item of a row, as a library stores it; ``prefix`` goes before the path of its image."""
        record, labels = self.origin.records[row], self.pairs.labels
        names = () if labels is None else np.array(self.pairs.class_names)[labels[row] != 0].tolist()
        picture = record.picture and prefix + record.picture
        return Item(record.id, text=record.text, picture=picture, labels=tuple(names))

    def take(self, rows: IntArray) -> Source:
        """The items of some rows."""
        records = tuple(self.origin.records[row] for row in rows.tolist())
        return replace(self, pairs=self.pairs.take(rows), origin=replace(self.origin, records=records))


def read_source(data: str | Path, config: BuildConfig, *, work: Path, on_progress: OnProgress = ignore) -> Source:
    """Read and label the items of a build; facts of image files are written to a file in ``work``.

    DataError if the data contains features, has nothing to learn from, or all labels are equal; or if something would
    be skipped, and ``strict`` is set.
    """
    method, labels_from, learn_from = method_class(config.method), config.labels_from, config.learn_from
    source = read_raw(data, strict=config.strict, known=work / FILES, place=config.place, on_progress=on_progress)
    pairs, by_folder = source.pairs, source.origin.folder_labels and not method.supervised
    chosen = ("data", "folders") if by_folder else (None, "data", "folders")
    given = pairs.labels is not None and labels_from in chosen
    if learn_from is None:
        few = (pairs.has_image & pairs.has_text).sum() < LEAST_ITEMS
        learn_from = "labels" if given or method.supervised else "pairs"
        learn_from = "nothing" if few and not given and config.default_model else learn_from
    if by_folder and labels_from is None and learn_from != "labels":
        note = "names of folders serve as filters; --labels-from folders learns from them"
        source = replace(source, notes=(*source.notes, note))
    source = replace(source, learn_from=learn_from)
    if learn_from == "nothing" and pairs.texts is None and labels_from is None:
        return with_texts(source)
    source = with_texts(_labelled(source, labels_from))
    if learn_from == "pairs":
        method.learns_from(replace(source.pairs, labels=None, class_names=()))
    if learn_from != "labels":
        return source
    labels = np.asarray(source.pairs.labels)[method.learns_from(source.pairs)]
    if len(np.unique(labels, axis=0)) == 1:  # checked before anything takes long
        names = ", ".join(np.array(source.pairs.class_names)[labels[0] != 0])
        found = f"all {len(labels)} items have the same labels ({names})"
        raise DataError(f"{source.pairs.source}: {found}; give labels that differ, or use --labels-from text.")
    return source


def read_raw(
    data: str | Path, *, strict: bool, known: Known | None = None, place: bool = True, on_progress: OnProgress = ignore
) -> Source:
    """Read items with the labels and texts that they have; ``known`` as in :func:`read_files`."""
    opened = open_pairs(data, on_progress=on_progress)
    if opened.origin is None:
        raise DataError(f"{data} contains features; give a folder of images, or use `rmsh train` for features.")
    if strict:
        refuse_skipped(opened.origin.skipped, opened.name)
    source = Source(opened.pairs, opened.origin, opened.notes, opened.name)
    return with_files(source, known=known or {}, place=place, on_progress=on_progress)


def with_files(source: Source, *, known: Known, place: bool, on_progress: OnProgress) -> Source:
    """Add the metadata of image files; items without a text get the caption of their file, or else its keywords."""
    names = [record.picture for record in source.origin.records if record.picture is not None]
    source = replace(source, files=read_files(source.origin, names, known=known, place=place, on_progress=on_progress))
    records, count = [], 0
    for record in source.origin.records:
        file = source.files.get(record.picture or "")
        text = None if file is None else file.photo.caption or ", ".join(file.photo.keywords)
        if record.text is None and text:
            record, count = replace(record, text=text), count + 1
        records.append(record)
    if not count:
        return source
    return replace(
        source,
        pairs=to_pairs(records, folder=source.origin.folder, source=source.pairs.source, others=source.origin.others),
        origin=replace(source.origin, records=tuple(records)),
        notes=(*source.notes, f"{count:,} texts are captions or keywords in image files"),
    )


def _labelled(source: Source, labels_from: str | None) -> Source:
    pairs = source.pairs
    if labels_from in ("data", "folders") or (labels_from is None and pairs.labels is not None):
        if pairs.labels is None:
            raise DataError(f"{source.name}: no item has a label; add labels, or mine them with --labels-from text.")
        if labels_from == "folders" and not source.origin.folder_labels:
            raise DataError(f"{source.name}: the labels are not names of folders; use them with --labels-from data.")
        return source
    if pairs.texts is None:
        raise DataError(
            f"{source.name}: no item has a label or a text; add a metadata.csv with texts or labels, a .txt file for "
            "each image, or a folder per class. Images alone need the default method, bits and encoders."
        )
    try:
        classes = mine_classes(np.asarray(source.pairs.texts)[source.pairs.has_text].tolist())
    except DataError:  # nothing to filter by, which is no loss if something else is learned from
        if source.learn_from == "labels":
            raise
        return source
    return with_classes(
        source,
        classes,
        f"no labels given; {'' if source.learn_from == 'labels' else 'for filters, '}the most frequent words of the "
        f"texts become the classes: {listed(classes, most=_MOST_SHOWN)}",
    )


def with_classes(source: Source, classes: Classes, *notes: str) -> Source:
    """Label items by the words of their texts; an item without a text gets no label."""
    pairs = source.pairs
    texts = [""] * len(pairs) if pairs.texts is None else np.asarray(pairs.texts).tolist()
    labelled = replace(pairs, labels=label_texts(texts, classes), class_names=tuple(classes))
    return replace(source, pairs=labelled, notes=(*source.notes, *notes), classes=classes)


def with_texts(source: Source) -> Source:
    """If no item has a text, use the label names as texts, so that words can find images.

    Names of folders that nothing is learned from are filters, and say too little about an image to be its text.
    """
    pairs, origin = source.pairs, source.origin
    filters = origin.folder_labels and source.learn_from == "nothing"
    if pairs.texts is not None or filters or not pairs.labelled.any():
        return source
    texts = [", ".join(record.labels) for record in origin.records]
    records = (replace(record, text=text or None) for record, text in zip(origin.records, texts, strict=True))
    return replace(
        source,
        pairs=replace(pairs, texts=np.array(texts), has_text=pairs.labelled),
        origin=replace(origin, records=tuple(records)),
        notes=(*source.notes, "no item has a text; the label names of an item serve as its text"),
        named=True,
    )


def encode_source(
    source: Source,
    encoders: Mapping[Modality, Encoder],
    *,
    cache: Path,
    strict: bool = False,
    executor: Executor | None = None,
    on_progress: OnProgress = ignore,
) -> Source:
    """Replace images and texts by features; items with neither left are skipped, or refused if ``strict`` is set."""
    unreadable: list[Skipped] = []
    told: dict[str, Any] = {"on_skipped": unreadable.extend, "on_progress": on_progress}
    pairs = encode_pairs(source.pairs, encoders, cache=cache, executor=executor, **told)
    encoded = replace(source, pairs=pairs)
    if not unreadable:
        return encoded
    record_of = {record.id: record for record in source.origin.records}
    skipped = [replace(one, file=record_of[one.id].file, row=record_of[one.id].row) for one in unreadable]
    if strict:
        refuse_skipped(skipped, source.name)
    record_of |= {one.id: replace(record_of[one.id], picture=None) for one in skipped}
    origin = replace(source.origin, records=tuple(record_of.values()), skipped=(*source.origin.skipped, *skipped))
    return replace(encoded, origin=origin).take(np.flatnonzero(pairs.has_image | pairs.has_text))


def read_files(
    origin: Origin, names: Iterable[str], *, known: Known, place: bool = True, on_progress: OnProgress = ignore
) -> dict[str, ImageFile]:
    """The image files of data by name; those that cannot be read are left out, because their encoder reports them.

    ``known`` are files as they were before, or a JSON file of them, which is updated; a file with the same size and
    time of change is not read again. ``place`` keeps where an image was taken.
    """
    names, before = list(names), _load(known) if isinstance(known, Path) else known
    report = counter(on_progress, "read files", len(names), "file")

    def read(name: str) -> ImageFile | None:
        folder, path = locate(name, origin.folder, origin.others)
        state, earlier = file_state(path), before.get(name)
        if state is None or (earlier is not None and [earlier.size, earlier.modified] == state):
            return earlier if state else None
        try:
            with open_regular(path, inside=folder) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if earlier is not None and earlier.hash == digest:
                return replace(earlier, size=state[0], modified=state[1])
            return ImageFile(state[0], state[1], digest, read_photo(path))
        except (DataError, OSError):
            return None

    found = {}
    with ThreadPoolExecutor(processors(), thread_name_prefix="rmsh-files") as pool:
        for count, (name, file) in enumerate(zip(names, pool.map(read, names), strict=True), start=1):
            if file is not None:
                found[name] = file
            report(count)
    if isinstance(known, Path) and found != before:
        make_folder(known.parent, mode=0o700)
        photos = {name: asdict(file.photo) | {"look": file.photo.look.hex()} for name, file in found.items()}
        write_json(known, {name: asdict(file) | {"photo": photos[name]} for name, file in found.items()})
    return found if place else {name: replace(f, photo=replace(f.photo, place=None)) for name, f in found.items()}


def _load(path: Path) -> dict[str, ImageFile]:
    """Files as they were written; an unusable list is made again."""
    if not path.is_file():
        return {}
    with suppress(FormatError, AttributeError, KeyError, TypeError, ValueError):
        return {
            str(name): ImageFile(int(one["size"]), int(one["modified"]), str(one["hash"]), Photo.parse(one["photo"]))
            for name, one in read_json(path).items()
        }
    return {}
