"""What few captioned images are best searched with: the bundled model, or one trained on their own pairs.

Photographs of coco66k and generated scenes; 500 pairs of each are held out, and of the others 100 to 2,500 are trained
on. The twin of the bundled model has seen none of them. "mined classes" is GLINT on the frequent words of the captions,
which `rmsh build` used before NEST.

With ``--labelled``, NEST and RMSH instead learn from 2,000 pairs with labels, and are scored on validation pairs: what
NEST does with few labelled pairs was chosen there.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.console import Only  # noqa: TC001  # typer reads it
from lab.data import RESULTS, coco66k, coco66k_place, write_measurement
from lab.demo import SCENES
from lab.scenes import write_scenes
from lab.wheel_model import TWIN, photographs_of, score
from rmsh.core.files import cache_folder
from rmsh.core.types import MODALITIES
from rmsh.data.labels import label_texts, mine_classes
from rmsh.data.open import open_pairs
from rmsh.features.extract import encode_pairs
from rmsh.methods import create
from rmsh.metrics.directions import evaluate_directions
from rmsh.metrics.histogram import LabelledCodes
from rmsh.model import load
from rmsh.pipeline import DEFAULT_ENCODERS, for_protocol, prepare_encoders

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

_HELD_OUT = 500
_SIZES = (100, 300, 1000, 2500)
_NAME = "tuning/few_pairs"


def main(
    *,
    only: Only = "",
    labelled: Annotated[bool, typer.Option("--labelled", help="NEST and RMSH on 2,000 labelled pairs.")] = False,
) -> None:
    """Run the cases that are not stored yet, and print all."""
    if labelled:
        _labelled(only)
        return
    rows = _stored(_NAME).get("rows", {})
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


def _stored(name: str) -> dict[str, Any]:
    file = RESULTS / f"{name}.json"
    return dict(json.loads(file.read_text())) if file.is_file() else {}


_LABELLED = "tuning/nest_few_pairs"
_TRAIN, _DATABASE = 2000, 10_000
_RANKS = (10, 88)  # 88 of 10,000 items is as deep as 500 of 56,947
_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"NEST, seed {seed}": ("nest", {"seed": seed}) for seed in range(3)},
    **{f"NEST, dropout {rate}, seed 0": ("nest", {"dropout": rate}) for rate in (0.5, 0.8)},
    **{f"RMSH, seed {seed}": ("rmsh", {"bits": 64, "seed": seed}) for seed in range(3)},
    "RMSH as chosen for all pairs, seed 0": ("rmsh", {"bits": 64, "epochs": 20, "learning_rate": 0.0025}),
}


def _labelled(only: str) -> None:
    """Train on 2,000 labelled pairs; validation pairs are the queries, 10,000 further training pairs the database."""
    found = _stored(_LABELLED)
    rows: dict[str, Any] = found.setdefault("rows", {})
    wanted = [name for name in _CASES if name not in rows and re.search(only, name)]
    if wanted:
        opened = for_protocol(coco66k(DEFAULT_ENCODERS["text"]), "unseen", validation=True)
        split = opened.split
        if split is None:
            raise SystemExit("coco66k has no split; prepare it again.")
        order = np.random.default_rng(0).permutation(split.train)
        train, database = np.sort(order[:_TRAIN]), order[_TRAIN : _TRAIN + _DATABASE]
        parts = [opened.pairs.take(rows) for rows in (train, split.query, database)]
        for name in wanted:
            rows[name] = _ranked(name, *parts)
            print(name, rows[name], flush=True)
            write_measurement(_LABELLED, {key: value for key, value in found.items() if key != "commit"})
    for name, row in rows.items():
        print(name, row)


def _ranked(case: str, train: Pairs, query: Pairs, database: Pairs) -> dict[str, Any]:
    """NDCG of the first 64 bits in both directions, and the CPU seconds of training."""
    method, options = _CASES[case]
    started = time.process_time()
    model = create(method, **options).fit(train).model
    seconds = round(time.process_time() - started)
    sides = [
        {m: LabelledCodes(model.encode(p.features(m), m).prefix(64), np.asarray(p.labels)) for m in MODALITIES}
        for p in (query, database)
    ]
    scores = evaluate_directions(*sides, k=_RANKS)
    named = {d: {n.lower(): s.value for n, s in found.by_name().items()} for d, found in scores.items()}
    ndcg = {f"ndcg@{k}": {d: round(found[f"ndcg@{k}"], 4) for d, found in named.items()} for k in _RANKS}
    return {**ndcg, "cpu_seconds": seconds}


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
