"""Export: everything comes back from parquet; faiss has the codes under their rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import InputError, MissingExtraError
from rmsh.data.readers.matrix_files import list_matrices, read_matrix
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


def test_faiss_finds_the_rows_of_a_library(stocked: Library, tmp_path: Path, code: Code) -> None:
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    assert export.export(stocked, tmp_path / "x.faiss", codes="image") == 1
    assert read_matrix(*list_matrices(tmp_path / "x.faiss")).tolist() == code(["b"], "image").packed.tolist()
    assert export.export(stocked, tmp_path / "x.faiss") == 3
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
