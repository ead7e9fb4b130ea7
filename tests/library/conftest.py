"""Fixtures: a tiny model, libraries of it, and codes that follow from an id alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.types import Modality
from rmsh.hash_function import HashFunction, Layer
from rmsh.library import Item, Library
from rmsh.model import Model

BITS = 16


def make_model(bits: int, seed: int) -> Model:
    """A model that nobody asks for codes: tests make codes of ids."""
    weight = np.random.default_rng(seed).normal(size=(4, bits)).astype(np.float32)
    function = HashFunction((Layer(weight, np.zeros(bits, np.float32), "none"),))
    return Model({"image": function, "text": function}, "test", {})


def code_ids(ids: Iterable[str], modality: Modality = "text", bits: int = BITS) -> Codes:
    """Codes that follow from ids and modality, so that any test knows what a library must hold."""
    names = list(ids)
    digests = [hashlib.sha512(f"{modality} {name}".encode()).digest() for name in names]
    values = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8).reshape(len(names), 64), axis=1)[:, :bits]
    return Codes.from_values(values.astype(np.float32) - 0.5, names)


Fill = Callable[..., None]


@pytest.fixture(scope="session")
def model() -> Model:
    return make_model(BITS, 0)


@pytest.fixture(scope="session")
def new_model() -> Model:
    """A model of other codes, and longer ones."""
    return make_model(24, 1)


@pytest.fixture(scope="session")
def code() -> Callable[..., Codes]:
    return code_ids


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "library"


@pytest.fixture
def library(folder: Path, model: Model) -> Iterator[Library]:
    """An empty library, open for writing."""
    with Library.create(folder, model) as opened:
        yield opened


@pytest.fixture
def fill(model: Model) -> Fill:
    """Add items of some ids with the text "text of ID", a label for their first letter, and both codes."""

    def add(library: Library, ids: Iterable[str]) -> None:
        names = list(ids)
        items = [Item(name, text=f"text of {name}", labels=(name[0],)) for name in names]
        codes = {m: code_ids(names, m) for m in ("image", "text")}
        library.add(items, codes, model=model.fingerprint)

    return add
