"""From data to codes: features, training, encoding. The commands and the builder call these functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmsh.codes import Codes, to_int8
from rmsh.codes_file import CodesFile
from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES, IntArray, Modality
from rmsh.data.pairs import Pairs, is_raw
from rmsh.data.records import Record, Skipped, to_pairs
from rmsh.data.splits import PROTOCOLS, Split, hold_out_validation, random_split, unseen_split
from rmsh.features import extract
from rmsh.features.extract import OnSkipped, encode_pairs
from rmsh.methods.database import database_codes

if TYPE_CHECKING:
    from rmsh.data.open import Opened
    from rmsh.features.base import Encoder
    from rmsh.features.executors import Executor
    from rmsh.library.items import Item
    from rmsh.library.recode import Encode
    from rmsh.methods.base import Method
    from rmsh.model import Model

DEFAULT_ENCODERS: Mapping[Modality, str] = {"image": "efficientnet-lite0", "text": "minilm"}
SPLIT = "split.json"  # in the folder of a model: the items that it was trained on, and the queries held out


def with_queries(opened: Opened, queries: int) -> Opened:
    """The same data with queries drawn at random (seed 0), which are not trained on."""
    if opened.split is not None:
        raise ConfigError(f"--queries is {queries}, but {opened.name} has its own queries; omit --queries.")
    return replace(opened, split=random_split(len(opened.pairs), queries))


def split_of_training(folder: Path, opened: Opened) -> Split | None:
    """The split that a model was trained with, or None if it was trained on items with other IDs."""
    try:
        return Split.load(folder / SPLIT, opened.pairs.ids)
    except DataError:  # other items, or a model of an older version, which has no such file
        return None


def for_protocol(opened: Opened, protocol: str, *, validation: bool = False) -> Opened:
    """The same data with the split of a protocol, derived from its own; for ``validation``, queries are held out."""
    if protocol not in PROTOCOLS:
        raise ConfigError(f"The protocol is {protocol!r}; give one of {', '.join(PROTOCOLS)}.")
    if protocol == "paper" and not validation:
        return opened
    if opened.split is None:
        raise DataError(f"{opened.name} has no split, which protocols are derived from; draw queries (--queries N).")
    if protocol == "paper":
        return replace(opened, split=hold_out_validation(opened.split))
    return replace(opened, split=unseen_split(opened.split, validation=validation))


def training_rows(opened: Opened) -> IntArray:
    """The training rows of the split, or all rows."""
    return np.arange(len(opened.pairs)) if opened.split is None else opened.split.train


def prepare_encoders(pairs: Pairs, names: Mapping[Modality, str], *, rows: IntArray) -> dict[Modality, Encoder]:
    """Create encoders for the raw columns of pairs, prepared on training rows."""
    for modality in _raw_modalities(pairs):
        if modality not in names:
            raise DataError(f"{pairs.source}: the {modality}s are raw; give features, or an encoder for {modality}s.")
    return {m: extract.prepare(names[m], pairs, modality=m, rows=rows) for m in _raw_modalities(pairs)}


def restore_encoders(model: Model, pairs: Pairs) -> dict[Modality, Encoder]:
    """The encoders that a model was trained with, for the raw columns of new pairs."""
    for modality in _raw_modalities(pairs):
        if modality not in model.encoders:
            found = f"the {modality}s are raw, but the model was trained on features"
            raise InputError(f"{pairs.source}: {found}; give {modality} features of the same kind.")
    return {m: extract.restore(model.encoders[m]) for m in _raw_modalities(pairs)}


def _raw_modalities(pairs: Pairs) -> list[Modality]:
    return [m for m in MODALITIES if (column := pairs.column(m)) is not None and is_raw(column)]


def check_training(out: Path, encoders: Mapping[Modality, str]) -> None:
    """Refuse what :func:`learn` would refuse after the data was read: a finished model, an unknown encoder."""
    if (out / "config.json").exists():
        raise InputError(f"{out} contains a finished model; choose another folder, or remove this one.")
    for modality, name in encoders.items():
        extract.check_encoder(name, modality)


def learn(
    method: Method,
    opened: Opened,
    *,
    out: Path,
    encoders: Mapping[Modality, str] = DEFAULT_ENCODERS,
    cache: Path | None = None,
    strict: bool = False,
    on_skipped: OnSkipped | None = None,
    on_progress: OnProgress = ignore,
) -> Model:
    """Train on the training rows of some data and write the model folder; an interrupted run is resumed."""
    check_training(out, encoders)
    rows = training_rows(opened)
    prepared = prepare_encoders(opened.pairs, encoders, rows=rows)
    pairs = encode_pairs(opened.pairs, prepared, cache=cache, on_skipped=on_skipped, on_progress=on_progress)
    checkpoint = out / "checkpoint.safetensors"
    method.fit(pairs.take(rows), strict=strict, checkpoint=checkpoint, on_progress=on_progress)
    model = method.model.with_encoders({m: e.describe() for m, e in prepared.items()})
    (opened.split or Split("all", rows, rows[:0], rows)).save(out / SPLIT, opened.pairs.ids)
    model.save(out)
    checkpoint.unlink(missing_ok=True)
    return model


def code(
    model: Model,
    opened: Opened,
    *,
    trained: Split | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    on_skipped: OnSkipped | None = None,
    on_progress: OnProgress = ignore,
) -> CodesFile:
    """The codes of all items, for `rmsh evaluate`; ``trained`` is the split of the training of the model, if known."""
    encoders = restore_encoders(model, opened.pairs)
    told: dict[str, Any] = {"on_skipped": on_skipped, "on_progress": on_progress}
    pairs = encode_pairs(opened.pairs, encoders, cache=cache, executor=executor, **told)
    codes = {m: model.encode(pairs.features(m), m).packed for m in MODALITIES if pairs.column(m) is not None}
    if model.database and opened.split is not None:
        for modality, packed in codes.items():
            items = pairs.take(opened.split.database)
            packed[opened.split.database] = database_codes(model, items, modality).packed
    if not codes:
        raise DataError(f"{opened.name}: there are neither images nor texts to encode.")
    roles = None
    if opened.split is not None:  # "" is neither database nor query
        roles = np.full(len(pairs), "", dtype="<U8")
        roles[opened.split.database], roles[opened.split.query] = "database", "query"
    return CodesFile(
        bits=model.bits,
        ids=pairs.ids,
        **codes,
        has_image=pairs.has_image,
        has_text=pairs.has_text,
        labels=pairs.labels,
        classes=pairs.class_names,
        split=roles,
        trained=None if trained is None else np.isin(np.arange(len(pairs)), trained.train),
        model=model.fingerprint,
    )


def codes_of(
    model: Model, pairs: Pairs, rows: IntArray | None = None, *, vectors: bool = False
) -> dict[Modality, Codes]:
    """The codes of pairs, or of some rows, by modality; with ``vectors`` if wanted and the model has a joint space."""
    rows = np.arange(len(pairs)) if rows is None else rows
    codes: dict[Modality, Codes] = {}
    for modality in model.functions:
        present = rows[pairs.has(modality)[rows]]
        if present.size:
            features = pairs.features(modality)[present]
            codes[modality] = model.encode(features, modality, ids=pairs.ids[present])
            if vectors and model.has_embedding:
                codes[modality] = replace(codes[modality], vectors=to_int8(model.vectors(features, modality)))
    return codes


ImagePath: TypeAlias = "Callable[[Item], Path | None]"


def item_coder(model: Model, *, image_path: ImagePath, on_skipped: OnSkipped | None = None) -> Encode:
    """A function that computes the codes of a library's items with a new model, for recoding.

    ``on_skipped`` is called with the images that cannot be read, whose items are then encoded from their texts; if it
    is None, they are an error. The codes have vectors if the model has a joint space.
    """
    encoders = {m: extract.restore(model.encoders[m]) for m in model.functions if m in model.encoders}
    if not encoders:
        raise InputError("The model was trained on features; give one that was trained on images and texts.")

    def encode(items: Sequence[Item]) -> dict[Modality, Codes]:
        records, skipped = _records(items, encoders, image_path)
        pairs = to_pairs(records, folder=Path(), source="the library")
        raw = {m: encoder for m, encoder in encoders.items() if pairs.column(m) is not None}
        codes = codes_of(model, encode_pairs(pairs, raw, on_skipped=skipped.extend), vectors=True)
        if skipped:  # named as in the library; of an item without codes, nothing is left
            images = {item.id: item.picture or item.id for item in items}
            coded = {name for found in codes.values() for name in found.ids.tolist()}
            named = [replace(s, file=images[s.id], left_out="picture" if s.id in coded else "item") for s in skipped]
            (on_skipped or _refuse)(named)
        return codes

    return encode


def _refuse(skipped: Sequence[Skipped]) -> None:
    first = f"the first is that of {skipped[0].id!r}: {skipped[0].reason}"
    raise DataError(f"{len(skipped):,} images cannot be read, {first} Restore the files, or remove these items.")


def _records(
    items: Sequence[Item], modalities: Collection[Modality], image_path: ImagePath
) -> tuple[list[Record], list[Skipped]]:
    """Some modalities of items, and the images whose path is not allowed."""
    records: list[Record] = []
    skipped: list[Skipped] = []
    for item in items:
        path = None
        try:
            path = image_path(item) if "image" in modalities else None
        except InputError as error:  # a link that leads out of the folder
            skipped.append(Skipped(item.id, None, item.id, "item", str(error)))
        text = item.text if "text" in modalities else None
        records.append(Record(item.id, None, item.id, None if path is None else str(path), text))
    return records, skipped
