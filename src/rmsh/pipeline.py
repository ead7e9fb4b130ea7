"""The arrows between data and codes as functions: features, learning, coding. The command line calls these."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes_file import CodesFile
from rmsh.core.errors import DataError, InputError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES
from rmsh.data.pairs import is_raw
from rmsh.data.splits import Split, hold_out_validation
from rmsh.features import extract
from rmsh.features.base import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rmsh.core.types import IntArray, Modality
    from rmsh.data.open import Opened
    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder
    from rmsh.features.extract import OnUnreadable
    from rmsh.methods.base import Method
    from rmsh.model import Model

__all__ = [
    "DEFAULT_ENCODERS",
    "code",
    "encode_raw",
    "for_validation",
    "learn",
    "prepare_encoders",
    "restore_encoders",
    "training_rows",
]

DEFAULT_ENCODERS: Mapping[Modality, str] = {"image": "efficientnet-lite0", "text": "minilm"}


def for_validation(opened: Opened) -> Opened:
    """The same data, with training pairs in the place of the queries: what anything is chosen on.

    Raises:
        DataError: the data has no split to take them from.
    """
    if opened.split is None:
        raise DataError(f"{opened.name} has no split, so there is no database to take validation queries from.")
    return replace(opened, split=hold_out_validation(opened.split))


def training_rows(opened: Opened) -> IntArray:
    """The rows to learn from: those of the split, or all."""
    return np.arange(len(opened.pairs)) if opened.split is None else opened.split.train


def prepare_encoders(opened: Opened, names: Mapping[Modality, str]) -> dict[Modality, Encoder]:
    """Encoders for the raw columns of some data, prepared on its training rows."""
    encoders: dict[Modality, Encoder] = {}
    for modality in _raw_modalities(opened.pairs):
        if modality not in names:
            raise DataError(
                f"{opened.name}: the {modality}s are raw and there is no encoder for them; give features, or name an "
                f"encoder for {modality}s."
            )
        rows = training_rows(opened)
        encoders[modality] = extract.prepare(names[modality], opened.pairs, modality=modality, rows=rows)
    return encoders


def restore_encoders(model: Model, pairs: Pairs) -> dict[Modality, Encoder]:
    """The encoders a model was trained with, for the raw columns of new data.

    Raises:
        InputError: the model was trained on given features, and the data is raw.
    """
    for modality in _raw_modalities(pairs):
        if modality not in model.encoders:
            raise InputError(
                f"{pairs.source}: the {modality}s are raw, but this model was trained on given features; give features "
                "of the same kind."
            )
    return {m: extract.restore(model.encoders[m]) for m in _raw_modalities(pairs)}


def _raw_modalities(pairs: Pairs) -> list[Modality]:
    return [m for m in MODALITIES if (column := pairs.column(m)) is not None and is_raw(column)]


def encode_raw(
    pairs: Pairs,
    encoders: Mapping[Modality, Encoder],
    *,
    cache: Path | None = None,
    on_unreadable: OnUnreadable = refuse,
    on_progress: OnProgress = ignore,
) -> Pairs:
    """The same pairs with features in place of raw columns; pictures that cannot be read are refused, or missing."""
    for encoder in encoders.values():
        pairs = extract.extract(pairs, encoder, cache=cache, on_unreadable=on_unreadable, on_progress=on_progress)
    return pairs


def learn(
    method: Method,
    opened: Opened,
    *,
    out: Path,
    encoders: Mapping[Modality, str] = DEFAULT_ENCODERS,
    cache: Path | None = None,
    strict: bool = False,
    on_unreadable: OnUnreadable = refuse,
    on_progress: OnProgress = ignore,
) -> Model:
    """Learn from the training rows of some data and write the model folder; an interrupted run goes on.

    Raises:
        InputError: ``out`` holds a finished model.
    """
    if (out / "config.json").exists():
        raise InputError(f"{out} holds a finished model; give another folder, or remove this one.")
    prepared = prepare_encoders(opened, encoders)
    pairs = encode_raw(opened.pairs, prepared, cache=cache, on_unreadable=on_unreadable, on_progress=on_progress)
    checkpoint = out / "checkpoint.safetensors"
    method.fit(pairs.take(training_rows(opened)), strict=strict, checkpoint=checkpoint, on_progress=on_progress)
    model = method.model.with_encoders({m: e.describe() for m, e in prepared.items()})
    model.save(out)
    checkpoint.unlink(missing_ok=True)
    return model


def code(
    model: Model,
    opened: Opened,
    *,
    cache: Path | None = None,
    on_unreadable: OnUnreadable = refuse,
    on_progress: OnProgress = ignore,
) -> CodesFile:
    """The codes of all items of some data, with its labels and split, as the file `rmsh evaluate` reads."""
    encoders = restore_encoders(model, opened.pairs)
    pairs = encode_raw(opened.pairs, encoders, cache=cache, on_unreadable=on_unreadable, on_progress=on_progress)
    codes = {m: model.encode(pairs.features(m), m).packed for m in MODALITIES if pairs.column(m) is not None}
    if not codes:
        raise DataError(f"{opened.name}: there are neither images nor texts to code.")
    return CodesFile(
        bits=model.bits,
        ids=pairs.ids,
        image=codes.get("image"),
        text=codes.get("text"),
        has_image=pairs.has_image,
        has_text=pairs.has_text,
        labels=pairs.labels,
        classes=pairs.class_names,
        split=_roles(opened.split, len(pairs)),
        model=model.fingerprint,
    )


def _roles(split: Split | None, n: int) -> NDArray[np.str_] | None:
    """The part of each row, "database" or "query"; a row of neither has ""."""
    if split is None:
        return None
    roles = np.full(n, "", dtype="<U8")
    roles[split.database] = "database"
    roles[split.query] = "query"
    return roles
