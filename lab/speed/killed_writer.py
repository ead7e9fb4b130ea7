"""The process that kill_writers.py kills: it changes a library and reports every change before and after it.

Run as ``python -m lab.speed.killed_writer FOLDER SEED``. The content of an item is a function of its id, its version
and the model, so that it can be checked afterwards.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes
from rmsh.core.types import MODALITIES
from rmsh.hash_function import HashFunction, Layer
from rmsh.library import Item, Library, snapshot
from rmsh.library.maintenance import compact
from rmsh.library.recode import recode
from rmsh.model import Model

if TYPE_CHECKING:
    from rmsh.core.types import Modality

OPERATIONS = ("add", "update", "remove", "recode", "compact")


def make_model(number: int) -> Model:
    """One of two models, with codes of 32 and of 48 bits."""
    bits = (32, 48)[number]
    layer = Layer(np.full((1, bits), number + 1, np.float32), np.zeros(bits, np.float32), "none")
    return Model({modality: HashFunction((layer,)) for modality in MODALITIES}, "faults", {})


MODELS = {model.fingerprint: model for model in map(make_model, (0, 1))}


def make_item(name: str, version: int) -> Item:
    """The item with some id and version."""
    return Item(name, text=f"{name} version {version}", picture=f"{name}.jpg", labels=("all", f"v{version % 3}"))


def version_of(item: Item) -> int:
    """The version of an item, from its text."""
    return int(str(item.text).rsplit(" ", 1)[1])


def make_code(item: Item, modality: Modality, fingerprint: str) -> bytes:
    """The code of an item with a model."""
    size = MODELS[fingerprint].bits // 8
    return hashlib.sha256(f"{item.text} {modality} {fingerprint}".encode()).digest()[:size]


def make_codes(items: Sequence[Item], fingerprint: str) -> Mapping[Modality, Codes]:
    """The codes of some items; every third has no image code."""
    return {
        "image": _codes([item for item in items if version_of(item) % 3], "image", fingerprint),
        "text": _codes(items, "text", fingerprint),
    }


def _codes(items: Sequence[Item], modality: Modality, fingerprint: str) -> Codes:
    bits = MODELS[fingerprint].bits
    packed = b"".join(make_code(item, modality, fingerprint) for item in items)
    names: Any = [item.id for item in items]
    return Codes(np.frombuffer(packed, np.uint8).reshape(-1, bits // 8), bits, names)


def main(folder: Path, seed: int) -> None:
    """Change a library until the process is killed."""
    snapshot._FEW = 40  # so that snapshots are written often, and some kills happen meanwhile
    rng = random.Random(seed)  # noqa: S311
    with Library.open(folder, writable=True) as library:
        with library.reading() as connection:
            names = [name for (name,) in connection.execute("SELECT id FROM items")]
        _report({"ready": len(names)})
        favourite = OPERATIONS[
            seed % len(OPERATIONS)
        ]  # otherwise nearly all kills would interrupt the slowest operation
        for number in range(sys.maxsize):
            operation = rng.choice((*OPERATIONS, *[favourite] * 20))
            ids = _chosen(operation, names, rng, f"{seed}.{number}")
            version = rng.randrange(1000)
            _report({"begin": operation, "ids": ids, "version": version})
            _do(library, operation, [make_item(name, version) for name in ids])
            _report({"end": operation})
            names = [*(set(names) | set(ids) if operation != "remove" else set(names) - set(ids))]


def _chosen(operation: str, names: Sequence[str], rng: random.Random, fresh: str) -> list[str]:
    if operation == "add":
        return [f"{fresh}.{i}" for i in range(rng.randint(1, 30))]
    if operation in ("update", "remove"):
        return rng.sample(
            sorted(names), rng.randint(0, len(names) // 8)
        )  # so that the library neither empties nor grows without limit
    return []


def _do(library: Library, operation: str, items: Sequence[Item]) -> None:
    current = library.generation().fingerprint
    if operation == "remove":
        library.remove(item.id for item in items)
    elif operation == "compact":
        compact(library)
    elif operation == "recode":
        (other,) = MODELS.keys() - {current}
        recode(library, MODELS[other], encode=lambda some: make_codes(some, other), batch=16)
    else:
        change = library.add if operation == "add" else library.update
        change(items, make_codes(items, current), model=current)


def _report(what: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
