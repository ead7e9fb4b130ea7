"""The content of the libraries that faults happen to: it follows from IDs and versions, so that it can be checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import RmshError
from rmsh.core.types import MODALITIES
from rmsh.features.bag_of_words import BagOfWords
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.index.filters import Label, Text
from rmsh.library import Item, Library
from rmsh.library.queries import generation_of, intact_items
from rmsh.library.verify import verify
from rmsh.model import Model

if TYPE_CHECKING:
    from rmsh.core.types import Modality

WORDS = [
    "beach",
    "bridge",
    "car",
    "cat",
    "dog",
    "forest",
    "house",
    "lake",
    "moon",
    "plane",
    "river",
    "road",
    "snow",
    "sun",
    "train",
    "tree",
]
WIDTH = len(WORDS)  # of all vectors

Versions = dict[str, int]  # id -> version


def make_model(number: int) -> Model:
    """One of two models, with codes of 32 and of 48 bits, which encode words."""
    bits, functions = (32, 48)[number], dict[Any, HashFunction]()
    for modality in MODALITIES:
        weights = np.random.default_rng(number).normal(size=(2, WIDTH, max(WIDTH, bits))).astype(np.float32)
        joint = JointLayer(weights[0, :, :WIDTH], np.zeros(WIDTH, np.float32), np.array([4], np.float32))
        functions[modality] = HashFunction((joint, Layer(weights[1, :, :bits], np.zeros(bits, np.float32), "none")))
    return Model(functions, "faults", {}, encoders={"text": BagOfWords(WORDS).describe()})


MODELS = {model.fingerprint: model for model in map(make_model, (0, 1))}


def make_item(name: str, version: int) -> Item:
    """The item with some id and version."""
    words = f"{WORDS[version % WIDTH]} {WORDS[version // WIDTH % WIDTH]}"
    labels = ("all", f"v{version % 3}", WORDS[version % 5])
    return Item(name, text=f"{words} {name} version {version}", picture=f"{name}.jpg", labels=labels)


def version_of(item: Item) -> int:
    """The version of an item, from its text."""
    return int(str(item.text).rsplit(" ", 1)[1])


def make_code(item: Item, modality: Modality, fingerprint: str) -> tuple[bytes, bytes]:
    """The code and the vector of an item with a model."""
    made, size = hashlib.sha256(f"{item.text} {modality} {fingerprint}".encode()), MODELS[fingerprint].bits // 8
    return made.digest()[:size], made.digest()[-WIDTH:]


def make_codes(items: Sequence[Item], fingerprint: str) -> Mapping[Modality, Codes]:
    """The codes of some items; every third has no image code."""
    return {
        "image": _codes([item for item in items if version_of(item) % 3], "image", fingerprint),
        "text": _codes(items, "text", fingerprint),
    }


def _codes(items: Sequence[Item], modality: Modality, fingerprint: str) -> Codes:
    bits = MODELS[fingerprint].bits
    made = [make_code(item, modality, fingerprint) for item in items]
    packed = np.frombuffer(b"".join(code for code, _ in made), np.uint8).reshape(-1, bits // 8)
    vectors = np.frombuffer(b"".join(vector for _, vector in made), np.int8).reshape(-1, WIDTH)
    names: Any = [item.id for item in items]
    return Codes(packed, bits, names, vectors)


def inspect_library(folder: Path) -> tuple[Versions, list[str]]:
    """The items of a library, and its problems: what is incomplete, not found, or found by `verify`."""
    with Library.open(folder) as library:
        model = library.model().fingerprint
        with library.reading() as connection:
            number = generation_of(connection).number
            found = connection.execute(
                "SELECT row, codes.image, vectors.image, codes.text, vectors.text "
                "FROM codes LEFT JOIN vectors USING (row, generation) WHERE generation = ?",
                (number,),
            )
            stored = {row: {"image": (a, b), "text": (c, d)} for row, a, b, c, d in found}
            rows = [row for (row,) in connection.execute("SELECT row FROM items")]
            items, damaged = intact_items(connection, rows)
        problems = [*damaged.values()]
        problems += [
            f"the item {item.id} is incomplete"
            for row, item in items.items()
            if not _is_complete(item, stored.get(row), model)
        ]
        try:
            problems += _not_found(library, list(items.values()), model)
        except RmshError as error:
            problems.append(str(error))
    return {item.id: version_of(item) for item in items.values()}, [*problems, *verify(folder).problems]


def _is_complete(item: Item, codes: Mapping[str, tuple[Any, Any]] | None, model: str) -> bool:
    version = version_of(item)
    wanted = {m: make_code(item, m, model) if m == "text" or version % 3 else (None, None) for m in MODALITIES}
    return item == make_item(item.id, version) and codes == wanted


def _not_found(library: Library, items: Sequence[Item], model: str) -> list[str]:
    """Messages about items that are not found by their own code, a label and a word."""
    queries = make_codes(items, model)["text"]
    problems = [
        f"the item {query} is not found by its own code"
        for query, (hit,) in zip(queries.ids, library.search(queries, 1, to="text", model=model), strict=True)
        if hit.distance
    ]
    expected = {
        Label("v1"): {item.id for item in items if "v1" in item.labels},
        Text(WORDS[0]): {item.id for item in items if WORDS[0] in str(item.text).split()},
    }
    for where, names in expected.items() if items else ():
        (hits,) = library.search(queries.take(np.array([0])), len(items), to="text", model=model, where=where)
        if {hit.item.id for hit in hits} != names:
            problems.append(f"{len(hits)} items are found with {where}, there are {len(names)}")
    return problems
