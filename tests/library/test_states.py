"""Any sequence of changes: what a library finds equals brute force over what must be in it, to the last tie."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsh.codes import Codes, hamming
from rmsh.library import Item, Library, snapshot
from rmsh.library import views as view
from rmsh.library.maintenance import compact
from rmsh.library.verify import verify
from rmsh.model import Model

IDS = st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=6, unique=True)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "remove", "compact", "reopen"]), IDS), min_size=1, max_size=12
)
QUERIES = np.arange(16, dtype=np.uint8)[:, None]


class Mirror:
    """What a library must hold: codes of 4 bits by id, in the order of writing."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.writes = 0

    def put(self, library: Library, ids: list[str], model: str) -> None:
        values = [(self.writes * 7 + ord(name)) % 16 for name in ids]
        self.writes += 1
        for known in (True, False):
            chosen = [(name, value) for name, value in zip(ids, values, strict=True) if (name in self.codes) is known]
            if chosen:
                codes = Codes(np.array([[value] for _, value in chosen], np.uint8), 4, [name for name, _ in chosen])
                library.add([Item(name) for name, _ in chosen], {"text": codes}, model=model, replace=known)
        for name, value in zip(ids, values, strict=True):
            if name in self.codes:  # updates are written first
                del self.codes[name]
                self.codes[name] = value
        self.codes |= dict(zip(ids, values, strict=True))

    def ranking(self, query: int) -> list[tuple[str, int]]:
        if not self.codes:
            return []
        held = np.array([[value] for value in self.codes.values()], np.uint8)
        distances = hamming(np.array([[query]], np.uint8), held)[0]
        order = np.argsort(distances, kind="stable")
        return [(list(self.codes)[i], int(distances[i])) for i in order]


def _check(reader: Library, mirror: Mirror, model: str) -> None:
    found = reader.search(Codes(QUERIES, 4, QUERIES[:, 0].astype(str)), 5, to="text", model=model)
    for query, hits in enumerate(found):
        assert [(hit.item.id, hit.distance) for hit in hits] == mirror.ranking(query)[:5]


@settings(max_examples=30, deadline=None)
@given(steps=STEPS, few=st.sampled_from([0, 2, 1024]))
def test_a_library_finds_what_brute_force_finds(steps: list[tuple[str, list[str]]], few: int) -> None:
    model = _model()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(snapshot, "_FEW", 5)  # so that snapshots are written on the way
        patch.setattr(view, "_FEW_REMOVED", few)  # so that removed rows are passed over both ways
        library, mirror = Library.create(Path(folder), model), Mirror()
        with Library.open(folder) as reader:
            for step, ids in steps:
                if step == "put":
                    mirror.put(library, ids, model.fingerprint)
                elif step == "remove":
                    there = [name for name in ids if mirror.codes.pop(name, None) is not None]
                    library.remove(there)
                elif step == "compact":
                    compact(library)
                else:
                    library.close()
                    library = Library.open(folder, writable=True)
                _check(reader, mirror, model.fingerprint)
        _check(library, mirror, model.fingerprint)
        library.close()
        assert verify(Path(folder)).problems == ()


def _model() -> Model:
    from rmsh.hash_function import HashFunction, Layer

    layer = Layer(np.ones((1, 4), np.float32), np.zeros(4, np.float32), "none")
    return Model({"text": HashFunction((layer,))}, "test", {})
