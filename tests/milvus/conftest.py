"""Fixtures: small models, a library, and codes that depend on the id alone."""

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


def _make_model(bits: int, seed: int) -> Model:
    weight = np.random.default_rng(seed).normal(size=(4, bits)).astype(np.float32)
    function = HashFunction((Layer(weight, np.zeros(bits, np.float32), "none"),))
    return Model({"image": function, "text": function}, "test", {})


def _code(ids: Iterable[str], modality: Modality = "text", bits: int = BITS) -> Codes:
    names = list(ids)
    digests = [hashlib.sha512(f"{modality} {name}".encode()).digest() for name in names]
    values = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8).reshape(len(names), 64), axis=1)[:, :bits]
    return Codes.from_values(values.astype(np.float32) - 0.5, names)


@pytest.fixture(scope="session")
def model() -> Model:
    return _make_model(BITS, 0)


@pytest.fixture(scope="session")
def new_model() -> Model:
    """A model with longer codes."""
    return _make_model(24, 1)


@pytest.fixture(scope="session")
def code() -> Callable[..., Codes]:
    """Compute the codes of ids."""
    return _code


@pytest.fixture
def library(tmp_path: Path, model: Model) -> Iterator[Library]:
    """An empty library, open for writing."""
    with Library.create(tmp_path / "library", model) as opened:
        yield opened


@pytest.fixture
def fill(model: Model) -> Callable[[Library, Iterable[str]], None]:
    """Add items with these ids, a text, a label and both codes."""

    def add(library: Library, ids: Iterable[str]) -> None:
        names = list(ids)
        items = [Item(name, text=f"text of {name}", labels=(name[0],)) for name in names]
        codes: dict[Modality, Codes] = {"image": _code(names, "image"), "text": _code(names, "text")}
        library.add(items, codes, model=model.fingerprint)

    return add
