"""The codes of items, for a library that is recoded: from their own texts and pictures, or from given features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmsh.errors import DataError, InputError
from rmsh.features import extract
from rmsh.types import MODALITIES

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder
    from rmsh.library.items import Item
    from rmsh.library.recode import Encode
    from rmsh.model import Model
    from rmsh.types import Modality

__all__ = ["item_coder"]

PicturePath: TypeAlias = Callable[["Item"], "Path | None"]
_Source: TypeAlias = "Callable[[Sequence[Item]], Codes | None]"  # None where no item has anything of that kind


def item_coder(model: Model, *, picture_path: PicturePath, features: Pairs | None = None) -> Encode:
    """A function from items to their codes by a model.

    Args:
        model: what makes the codes.
        picture_path: where the picture of an item is.
        features: matrices whose ids are those of the items; what they do not have is encoded from the items.

    Raises:
        InputError: the model was trained on features made elsewhere, and none are given.
    """
    sources: dict[Modality, _Source] = {}
    for modality in MODALITIES:
        if modality not in model.functions:
            continue
        if features is not None and features.column(modality) is not None:
            sources[modality] = _from_features(model, features, modality)
        elif modality in model.encoders:
            sources[modality] = _from_items(model, extract.restore(model.encoders[modality]), picture_path)
    if not sources:
        raise InputError(
            "The model was trained on features made elsewhere and cannot read texts and pictures itself; give the "
            "features of the items by id (--features FILE)."
        )
    return lambda items: _coded(items, sources)


def _coded(items: Sequence[Item], sources: Mapping[Modality, _Source]) -> dict[Modality, Codes]:
    coded = {modality: source(items) for modality, source in sources.items()}
    return {modality: codes for modality, codes in coded.items() if codes is not None}


def _from_features(model: Model, features: Pairs, modality: Modality) -> _Source:
    matrix, has = features.features(modality), features.has(modality)
    row_of = {str(name): row for row, name in enumerate(features.ids)}

    def code(items: Sequence[Item]) -> Codes | None:
        missing = next((item.id for item in items if item.id not in row_of), None)
        if missing is not None:
            raise DataError(
                f"{features.source}: there are no features of the item {missing!r}; give a row for every item of the "
                "library, with its id."
            )
        rows = np.array([row for item in items if has[row := row_of[item.id]]], dtype=np.int64)
        return model.encode(matrix[rows], modality, ids=features.ids[rows]) if rows.size else None

    return code


def _from_items(model: Model, encoder: Encoder, picture_path: PicturePath) -> _Source:
    def code(items: Sequence[Item]) -> Codes | None:
        raw = {item.id: value for item in items if (value := _raw(item, encoder.modality, picture_path)) is not None}
        return model.encode(encoder.encode([*raw.values()]), encoder.modality, ids=[*raw]) if raw else None

    return code


def _raw(item: Item, modality: Modality, picture_path: PicturePath) -> str | None:
    """What an encoder reads of an item: its text, or the path of its picture."""
    if modality == "text":
        return item.text
    path = picture_path(item)
    if path is None:
        return None
    if not path.is_file():
        raise DataError(f"The picture of the item {item.id!r} is not at {path}; put it back, or remove the item.")
    return str(path)
