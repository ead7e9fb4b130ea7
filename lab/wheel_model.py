"""Train the bundled model on all pairs of coco66k, score a twin on pairs it has not seen, and write the card.

Both learn from phrases of the captions and from names of the labels too. The twin has the same options and is trained
without the 4,956 queries and the 3,000 photographs. The scores in the card are the twin's; the model itself has seen
every pair. Both are trained at once, with one thread each; an interrupted run is resumed.
"""

from __future__ import annotations

import re
import tarfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.data import PROJECT, coco66k, coco66k_place, coco66k_root, write_measurement
from lab.phrases import PhraseNEST, read_names, read_phrases
from rmsh.compare.provenance import commit
from rmsh.core.errors import DataError
from rmsh.core.files import cache_folder, write_text
from rmsh.core.types import MODALITIES
from rmsh.data.open import open_pairs
from rmsh.features import extract
from rmsh.features.extract import encode_pairs
from rmsh.hash_function import HashFunction
from rmsh.methods.nest import prefix_lengths
from rmsh.metrics import LabelledCodes, evaluate_directions
from rmsh.model import load
from rmsh.pipeline import DEFAULT_ENCODERS

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.progress import Progress
    from rmsh.core.types import IntArray, Modality
    from rmsh.data.pairs import Pairs
    from rmsh.features.base import Encoder
    from rmsh.model import Model

FOLDER = PROJECT / "src" / "rmsh" / "models" / "coco"
TWIN = cache_folder() / "wheel-twin"
_RANK, _RECALL = 10, (1, 10)
_UNRELATED = 0.18  # mean cosine of words and unrelated images, with which the cut-off is the best on dev (cut_off.py)
_CREDIT = (
    "captions and labels of MS COCO 2014 by the COCO Consortium, CC BY 4.0 (https://cocodataset.org); the model comes "
    "with rmsh, whose package has its card"
)
_CARD = Path(__file__).with_name("wheel_card.md")


def main(
    *,
    epochs: Annotated[int | None, typer.Option(help="Epochs per stage, for a trial run.")] = None,
    out: Annotated[Path, typer.Option(help="Model folder to write.")] = FOLDER,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Train the twin and the model, score the twin, and write the model folder with its card."""
    made_by = commit()  # before training changes the model in this checkout
    pairs, captions, query = _read()
    photographs = photographs_of(pairs)
    held_out = np.union1d(query, np.flatnonzero(np.isin(pairs.ids, photographs.ids)))
    everything = np.arange(len(pairs))
    options = {"seed": seed, "epochs": epochs}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(train, rows, options, folder)
            for rows, folder in ((np.setdiff1d(everything, held_out), TWIN), (everything, out))
        ]
        for job in jobs:
            job.result()
    twin, model = load(TWIN), load(out)
    sets = {"queries": pairs.take(query), "photographs": photographs}
    scores = {name: {str(bits): score(twin, items, bits) for bits in lengths(twin)} for name, items in sets.items()}
    write_measurement(
        "tuning/wheel_model",
        {
            "commit": made_by,
            "what": "a twin of the bundled model on pairs it was not trained on, ranked among themselves",
            "pairs": {name: len(items) for name, items in sets.items()},
            "options": dict(twin.options),
            "scores": scores,
        },
    )
    write_text(out / "card.md", _card(model, pairs, captions, scores, {n: len(p) for n, p in sets.items()}))
    print((out / "card.md").read_text())


def _read() -> tuple[Pairs, list[str], IntArray]:
    """All pairs with features, their captions, and the rows of the queries."""
    opened = coco66k(DEFAULT_ENCODERS["text"])
    if opened.split is None:
        raise DataError("coco66k has no split.")
    captions = np.asarray(open_pairs(coco66k_place()).pairs.texts).tolist()
    return opened.pairs, captions, opened.split.query


def photographs_of(pairs: Pairs) -> Pairs:
    """The pairs whose photographs are at hand, with features by the encoder that files get."""
    folder = cache_folder() / "photographs"
    with tarfile.open(Path(coco66k_root()) / "images.tar") as tar:
        tar.extractall(folder, filter="data")
    files = {str(int(path.stem)): path for path in sorted(folder.glob("*.jpg"))}
    rows = np.array([row for row, name in enumerate(pairs.ids.tolist()) if name in files])
    raw = replace(pairs.take(rows), images=np.array([str(files[name]) for name in pairs.ids[rows].tolist()]))
    return encode_pairs(raw, {"image": _encoders(pairs)["image"]}, cache=cache_folder())


def _encoders(pairs: Pairs) -> dict[Modality, Encoder]:
    """The default encoders, which learn nothing from the pairs."""
    return {m: extract.prepare(name, pairs, modality=m, rows=np.arange(0)) for m, name in DEFAULT_ENCODERS.items()}


def train(rows: IntArray, options: dict[str, Any], folder: Path) -> None:
    """Train on some pairs, in one thread, and save the model in half precision, without the history of the loss."""
    import torch

    torch.set_num_threads(1)
    pairs, captions, _ = _read()
    checkpoint = cache_folder() / f"wheel-model-{len(rows)}.safetensors"
    encoder = _encoders(pairs)["text"]
    phrases, names = read_phrases(captions, encoder), read_names(np.asarray(pairs.labels), pairs.class_names, encoder)
    method = PhraseNEST(phrases.take(rows), names.take(rows), **options)
    model = method.fit(pairs.take(rows), checkpoint=checkpoint, on_progress=_report).model
    facts = {name: value for name, value in model.facts.items() if name != "history"}
    facts |= {"data": _CREDIT, "unrelated": _UNRELATED}
    encoders = {m: encoder.describe() for m, encoder in _encoders(pairs).items()}
    replace(rounded(model).with_encoders(encoders), facts=facts).save(folder)
    checkpoint.unlink(missing_ok=True)


def _report(progress: Progress) -> None:
    print(progress.stage, progress.done, progress.total, flush=True)


def lengths(model: Model) -> list[int]:
    """The length of the code and of its prefixes."""
    return [model.bits, *prefix_lengths(model.bits)]


def score(model: Model, pairs: Pairs, bits: int) -> dict[str, Any]:
    """Recall of counterparts and NDCG of pairs ranked among themselves, by direction."""
    labels = np.asarray(pairs.labels)
    sides: dict[Modality, LabelledCodes] = {}
    for modality in MODALITIES:
        codes: Codes = model.encode(pairs.features(modality), modality, ids=pairs.ids)
        sides[modality] = LabelledCodes(codes.prefix(bits), labels)
    found = evaluate_directions(sides, sides, k=_RANK, recall=_RECALL, leave_own_out=True)
    return {
        direction: {
            **{f"recall@{k}": round(s.further[f"recall@{k}"].value, 4) for k in _RECALL},
            f"ndcg@{_RANK}": round(s.ndcg.value, 4),
        }
        for direction, s in found.items()
    }


def _card(model: Model, pairs: Pairs, captions: list[str], scores: dict[str, Any], counts: dict[str, int]) -> str:
    rows = [
        f"| {counts[name]:,} {name} | {bits} | "
        + " | ".join(f"{found['i2t'][key]:.3f} / {found['t2i'][key]:.3f}" for key in found["i2t"])
        + " |"
        for name, by_bits in scores.items()
        for bits, found in by_bits.items()
    ]
    labels = np.asarray(pairs.labels)
    shares = {
        group: np.mean([bool(re.search(rf"\b({words})\b", caption.casefold())) for caption in captions])
        for group, words in {"men": "man|men|boys?|guys?|male", "women": "wom[ae]n|girls?|lady|ladies|female"}.items()
    }
    return _CARD.read_text(encoding="utf-8").format(
        method=model.method.upper(),
        bits=model.bits,
        prefixes=", ".join(map(str, prefix_lengths(model.bits))),
        items=len(pairs),
        image=DEFAULT_ENCODERS["image"],
        text=DEFAULT_ENCODERS["text"],
        classes=", ".join(pairs.class_names),
        rows="\n".join(rows),
        person=labels[:, pairs.class_names.index("person")].mean(),
        **shares,
    )


def rounded(model: Model) -> Model:
    """The same model with weights rounded to half precision, which its file then uses."""
    functions = {}
    for modality, f in model.functions.items():
        halves = {n: array.astype(np.float16).astype(np.float32) for n, array in f.tensors(modality).items()}
        functions[modality] = HashFunction.from_tensors(modality, halves, f.kinds)
    return replace(model, functions=functions)
