"""The codes of items, for a library that is recoded: from their own texts and pictures, or from given features.

A picture that can no longer be read costs its item the code of the picture, not the library its recoding: it is told
of, and the item is coded by what else it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmsh.core.errors import DataError, InputError
from rmsh.core.types import MODALITIES
from rmsh.data.records import Skipped
from rmsh.features import extract
from rmsh.features.base import encode_now

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import Modality
    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder
    from rmsh.library.items import Item
    from rmsh.library.recode import Encode
    from rmsh.model import Model

OnSkipped: TypeAlias = Callable[[Sequence[Skipped]], None]
PicturePath: TypeAlias = Callable[["Item"], "Path | None"]
_Lost: TypeAlias = dict[str, str]  # the id of an item -> why its picture cannot be read
_Source: TypeAlias = "Callable[[Sequence[Item]], tuple[Codes | None, _Lost]]"  # no codes where no item has any


def refuse_lost(skipped: Sequence[Skipped]) -> None:
    """Stop over pictures that cannot be read.

    Raises:
        DataError: the message gives the first.
    """
    raise DataError(
        f"{len(skipped):,} of the items' pictures cannot be read, such as that of {skipped[0].id!r}: "
        f"{skipped[0].reason} Put them back, or remove these items."
    )


def item_coder(
    model: Model, *, picture_path: PicturePath, features: Pairs | None = None, on_skipped: OnSkipped = refuse_lost
) -> Encode:
    """A function from items to their codes by a model.

    Args:
        model: what makes the codes.
        picture_path: where the picture of an item is.
        features: matrices whose ids are those of the items; what they do not have is encoded from the items.
        on_skipped: is told of pictures that cannot be read; if it does not raise, their items are coded by their texts.

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
    return lambda items: _coded(items, sources, on_skipped)


def _coded(items: Sequence[Item], sources: Mapping[Modality, _Source], on_skipped: OnSkipped) -> dict[Modality, Codes]:
    coded: dict[Modality, Codes] = {}
    lost: _Lost = {}
    for modality, source in sources.items():
        codes, unreadable = source(items)
        lost |= unreadable
        if codes is not None:
            coded[modality] = codes
    if lost:
        left = {name for codes in coded.values() for name in codes.ids.tolist()}
        on_skipped([_skipped(item, lost[item.id], item.id in left) for item in items if item.id in lost])
    return coded


def _skipped(item: Item, reason: str, has_code: bool) -> Skipped:
    return Skipped(item.picture or item.id, None, item.id, "picture" if has_code else "item", reason)


def _from_features(model: Model, features: Pairs, modality: Modality) -> _Source:
    matrix, has = features.features(modality), features.has(modality)
    row_of = {str(name): row for row, name in enumerate(features.ids)}

    def code(items: Sequence[Item]) -> tuple[Codes | None, _Lost]:
        missing = next((item.id for item in items if item.id not in row_of), None)
        if missing is not None:
            raise DataError(
                f"{features.source}: there are no features of the item {missing!r}; give a row for every item of the "
                "library, with its id."
            )
        rows = np.array([row for item in items if has[row := row_of[item.id]]], dtype=np.int64)
        return (model.encode(matrix[rows], modality, ids=features.ids[rows]) if rows.size else None), {}

    return code


def _from_items(model: Model, encoder: Encoder, picture_path: PicturePath) -> _Source:
    def code(items: Sequence[Item]) -> tuple[Codes | None, _Lost]:
        raw, lost = _texts(items) if encoder.modality == "text" else _pictures(items, picture_path)
        if not raw:
            return None, lost
        names = [*raw]
        encoded = encode_now(encoder, [*raw.values()])
        lost |= {names[one.row]: one.reason for one in encoded.unreadable}
        read = np.flatnonzero([name not in lost for name in names])
        ids = [names[row] for row in read.tolist()]
        return (model.encode(encoded.features[read], encoder.modality, ids=ids) if ids else None), lost

    return code


def _texts(items: Sequence[Item]) -> tuple[dict[str, str], _Lost]:
    return {item.id: item.text for item in items if item.text is not None}, {}


def _pictures(items: Sequence[Item], picture_path: PicturePath) -> tuple[dict[str, str], _Lost]:
    """The paths of the pictures that are there, and why others are not."""
    found: dict[str, str] = {}
    lost: _Lost = {}
    for item in items:
        try:
            path = picture_path(item)
        except InputError as error:  # a link that leads out of the folder of the pictures
            lost[item.id] = str(error)
            continue
        if path is not None and path.is_file():
            found[item.id] = str(path)
        elif path is not None:
            lost[item.id] = f"There is no file {path}."
    return found, lost
