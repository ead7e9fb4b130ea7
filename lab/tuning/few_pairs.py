"""What few captioned images are best searched with: the model of the wheel, or one trained on their own pairs.

Photographs of coco66k and generated scenes; 500 pairs of each are held out, and of the others 100 to 2,500 are trained
on. The twin of the wheel's model has seen none of them. "mined classes" is GLINT on the frequent words of the captions,
which `rmsh build` used before NEST.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.data import RESULTS, coco66k, coco66k_place, write_measurement
from lab.demo import SCENES
from lab.scenes import write_scenes
from lab.wheel_model import TWIN, photographs_of, score
from rmsh.core.cache import cache_folder
from rmsh.data.labels import label_texts, mine_classes
from rmsh.data.open import open_pairs
from rmsh.features.extract import encode_pairs
from rmsh.methods import create
from rmsh.model import load
from rmsh.pipeline import DEFAULT_ENCODERS, prepare_encoders

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

_HELD_OUT = 500
_SIZES = (100, 300, 1000, 2500)
_NAME = "tuning/few_pairs"


def main(*, only: Annotated[str, typer.Option(metavar="REGEX", help="Only run cases that match.")] = "") -> None:
    """Run the cases that are not stored yet, and print all."""
    file = RESULTS / f"{_NAME}.json"
    rows: dict[str, Any] = json.loads(file.read_text())["rows"] if file.is_file() else {}
    for data, read in (("photographs", _photographs), ("scenes", _scenes)):
        names = [f"{data}, {name}" for name in ("wheel", *(f"{n} {way}" for n in _SIZES for way in _WAYS))]
        wanted = [name for name in names if name not in rows and re.search(only, name)]
        if not wanted:
            continue
        pairs, captions = read()
        order = np.random.default_rng(0).permutation(len(pairs))
        test, rest = pairs.take(order[:_HELD_OUT]), order[_HELD_OUT:]
        for name in wanted:
            model = _model(name.partition(", ")[2], pairs, captions, rest)
            rows[name] = score(model, test, model.bits)
            print(name, rows[name], flush=True)
            what = f"{_HELD_OUT} held-out pairs ranked among themselves, by what the model was trained on"
            write_measurement(_NAME, {"what": what, "rows": rows})
    for name, row in rows.items():
        print(name, row)


def _photographs() -> tuple[Pairs, list[str]]:
    opened = coco66k(DEFAULT_ENCODERS["text"])
    texts = np.asarray(open_pairs(coco66k_place()).pairs.texts).tolist()
    captions = dict(zip(opened.pairs.ids.tolist(), texts, strict=True))
    pairs = photographs_of(opened.pairs)
    return pairs, [captions[name] for name in pairs.ids.tolist()]


def _scenes() -> tuple[Pairs, list[str]]:
    """The scenes of the demonstration, whose features it shares."""
    folder = cache_folder() / "demo"
    write_scenes(folder / "scenes", SCENES)
    raw = open_pairs(folder / "scenes").pairs
    encoders = prepare_encoders(raw, DEFAULT_ENCODERS, rows=np.arange(len(raw)))
    return encode_pairs(raw, encoders, cache=folder / "library.build" / "features"), np.asarray(raw.texts).tolist()


def _from_pairs(pairs: Pairs, _: list[str]) -> Model:
    return create("nest").fit(replace(pairs, labels=None, class_names=())).model


def _from_mined(pairs: Pairs, captions: list[str]) -> Model:
    classes = mine_classes(captions)
    mined = replace(pairs, labels=label_texts(captions, classes), class_names=tuple(classes))
    return create("glint").fit(mined).model


_WAYS: dict[str, Callable[[Pairs, list[str]], Model]] = {"pairs": _from_pairs, "mined classes": _from_mined}


def _model(case: str, pairs: Pairs, captions: list[str], rest: Any) -> Model:
    if case == "wheel":
        return load(TWIN)
    count, _, way = case.partition(" ")
    rows = rest[: int(count)]
    return _WAYS[way](pairs.take(rows), [captions[row] for row in rows.tolist()])
