"""Export: everything comes back from parquet; faiss is handed the codes under their rows."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import InputError, MissingExtraError
from rmsh.library import Item, Library, export

Fill = Callable[..., None]
Code = Callable[..., Codes]


@pytest.fixture
def stocked(library: Library, code: Code, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(export, "_ROWS", 2)
    items = [Item("a", text="x", picture="a.jpg", labels=("q", "p")), Item("b"), Item("c", text='"')]
    codes = {"text": code(["a", "b", "c"]), "image": code(["b"], "image")}
    library.add(items, codes, model=library.generation().fingerprint)
    return library


def test_everything_comes_back_from_parquet(stocked: Library, tmp_path: Path, code: Code) -> None:
    assert export.export(stocked, tmp_path / "x.parquet") == 3
    table = pq.read_table(tmp_path / "x.parquet")
    first, second, _ = table.to_pylist()
    plain = {"row": 1, "id": "a", "text": "x", "picture": "a.jpg", "labels": ["p", "q"]}
    assert first == {**plain, "image_code": None, "text_code": code(["a"]).packed[0].tobytes()}
    assert (second["labels"], second["image_code"]) == ([], code(["b"], "image").packed[0].tobytes())
    facts = table.schema.metadata
    assert facts[b"rmsh.bits"] == b"16"
    assert facts[b"rmsh.model"].decode() == stocked.generation().fingerprint


def test_an_empty_library_is_an_empty_table(library: Library, tmp_path: Path) -> None:
    assert export.export(library, tmp_path / "x.parquet") == 0
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 0


class FakeFlat:
    def __init__(self, bits: int) -> None:
        self.bits = bits


class FakeMap:
    def __init__(self, flat: FakeFlat) -> None:
        self.flat, self.ntotal, self.added = flat, 0, b""

    def add_with_ids(self, packed: Any, rows: Any) -> None:
        self.ntotal += len(packed)
        self.added += packed.tobytes() + rows.tobytes()


def _serialize(index: FakeMap) -> Any:
    return np.frombuffer(bytes([index.flat.bits]) + index.added, np.uint8)


def test_faiss_is_given_the_codes_with_their_rows(
    stocked: Library, tmp_path: Path, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = SimpleNamespace(IndexBinaryFlat=FakeFlat, IndexBinaryIDMap=FakeMap, serialize_index_binary=_serialize)
    monkeypatch.setitem(sys.modules, "faiss", fake)
    assert export.export(stocked, tmp_path / "x.faiss", codes="image") == 1
    row = np.array([2], np.int64).tobytes()
    assert (tmp_path / "x.faiss").read_bytes() == bytes([16]) + code(["b"], "image").packed.tobytes() + row


def test_faiss_itself_finds_the_rows_of_a_library(stocked: Library, tmp_path: Path, code: Code) -> None:
    if importlib.util.find_spec("faiss") is None:
        pytest.skip("faiss is not installed")
    import faiss

    export.export(stocked, tmp_path / "x.faiss")
    distances, rows = faiss.read_index_binary(str(tmp_path / "x.faiss")).search(code(["c", "a"]).packed, 1)
    assert (rows.tolist(), distances.tolist()) == ([[3], [1]], [[0], [0]])


def test_without_faiss_the_extra_is_named(stocked: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[bench\]"):
        export.export(stocked, tmp_path / "x.faiss")
    assert list(tmp_path.glob("x*")) == []


@pytest.mark.parametrize(("name", "codes"), [("x.csv", "text"), ("x.faiss", "sound")])
def test_what_cannot_be_exported_is_refused(name: str, codes: str, *, library: Library, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.parquet.*\.faiss.*image or text"):
        export.export(library, tmp_path / name, codes=codes)
