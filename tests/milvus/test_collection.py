"""A library on a Milvus server: reads and searches equal those of the folder, whatever its strings contain."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError, InputError, RmshError
from rmsh.core.types import Modality
from rmsh.index.filters import Filter, Id, Label, Text
from rmsh.library import Hit, Item, Library
from rmsh.milvus.collection import Collection
from rmsh.milvus.connection import Address
from rmsh.milvus.push import push
from rmsh.milvus.table import Table
from rmsh.model import Model

pytestmark = pytest.mark.milvus

HOSTILE = [
    'a"b',
    "a'b",
    "a\\b",
    "\\",
    '\\"',
    "100%",
    "%s {x} $y",
    '") or key >= 0 or id == ("',
    "' or 1 == 1 --",
    'array_contains(labels, "plain")',
    'like "a%"',
    "<script>alert(1)</script>&amp;",
    "two\nlines\r\n\tand a tab",
    "\x01\x1f\x7f\x80",
    "naïve 日本語 ア！ 😀 \u2028 \ufeff",
    "\\u0041\\n\\x41",
    "key",
    "null",
    " spaces ",
]


class Pushed(NamedTuple):
    library: Library
    address: str
    model: Path


@pytest.fixture(scope="module")
def pushed(
    model: Model,
    code: Callable[..., Codes],
    new_address: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pushed]:
    """A library of hostile and of plain items, some with one code only, and the collection it was pushed to."""
    folder, address = tmp_path_factory.mktemp("pushed") / "library", new_address()
    items = [Item(name, text=name, labels=(name, "hostile")) for name in HOSTILE]
    items += [Item(f"p{i}", text=f"plain {i}", picture=f"p/{i}.jpg", labels=("plain",)) for i in range(300)]
    items += [Item("empty", text=""), Item("picture only", picture="only.jpg"), Item("text only", text="words")]
    names = [item.id for item in items]
    codes = {"image": code(names[:-1], "image"), "text": code([*names[:-2], names[-1]], "text")}
    with Library.create(folder, model) as library:
        library.add(items, codes, model=model.fingerprint)
        push(library, address)
        yield Pushed(library, address, folder / "model")


@pytest.fixture(scope="module")
def collection(pushed: Pushed) -> Iterator[Collection]:
    with Collection.open(pushed.address, pushed.model, consistency="Strong") as opened:
        yield opened


def _distances(found: list[list[Hit]]) -> list[list[int]]:
    return [[hit.distance for hit in hits] for hits in found]


@pytest.mark.parametrize("to", ["image", "text"])
@pytest.mark.parametrize(
    "where",
    [None, Label("plain"), ~Label("plain"), Id("p7"), (Label("hostile") | Id("p1")) & ~Id("a'b"), Label("nobody has")],
    ids=str,
)
def test_a_collection_finds_what_the_folder_finds(
    pushed: Pushed, collection: Collection, code: Callable[..., Codes], to: Modality, where: Filter | None
) -> None:
    queries, asked = code(["q1", "q2", "q3"]), {"to": to, "model": pushed.library.generation().fingerprint}
    for k in (1, 20, 1000):
        ours, theirs = (place.search(queries, k, where=where, **asked) for place in (collection, pushed.library))
        assert _distances(ours) == _distances(theirs)
    assert ours == theirs  # all of them: no tie is left to the server


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_strings_are_data(
    pushed: Pushed, collection: Collection, code: Callable[..., Codes], value: str
) -> None:
    asked = {"to": "text", "model": pushed.library.generation().fingerprint}
    item = pushed.library.get(value)
    assert item is not None
    assert collection.get(value) == item
    everything = len(pushed.library.search(code(["q"]), 1000, **asked)[0])
    for leaf in (Label(value), Id(value)):
        assert [hit.item for hit in collection.search(code(["q"]), 9, where=leaf, **asked)[0]] == [item]
        assert len(collection.search(code(["q"]), 1000, where=~leaf, **asked)[0]) == everything - 1


def test_items_codes_and_counts_are_those_of_the_library(pushed: Pushed, collection: Collection) -> None:
    assert collection.count() == pushed.library.count() == len(HOSTILE) + 303
    assert collection.generation() == pushed.library.generation()
    assert collection.model().fingerprint == pushed.library.model().fingerprint
    assert collection.get("nobody") is None
    for name in ("p3", "empty", "picture only", "text only", "nobody"):
        assert collection.get(name) == pushed.library.get(name)


@pytest.mark.parametrize("modality", ["image", "text"])
def test_codes_are_those_of_the_library_and_in_its_order(
    pushed: Pushed, collection: Collection, modality: Modality
) -> None:
    names = ["p3", "text only", "nobody", *reversed(HOSTILE), "picture only", "empty"]
    ours, theirs = collection.codes(names, modality), pushed.library.codes(names, modality)
    assert ours.ids.tolist() == theirs.ids.tolist()
    np.testing.assert_array_equal(ours.packed, theirs.packed)
    assert len(collection.codes([], modality)) == 0
    with pytest.raises(InputError, match=r"8,193 .* 8,192 ids"):
        collection.codes(map(str, range(8193)), modality)


def test_a_reader_that_does_not_wait_sees_what_is_some_seconds_old(pushed: Pushed, code: Callable[..., Codes]) -> None:
    with Collection.open(pushed.address, pushed.model) as opened:
        found = opened.search(code(["q"]), 5, to="text", model=opened.generation().fingerprint)
    assert len(found) == 1


def test_two_readers_search_at_once(pushed: Pushed, collection: Collection, code: Callable[..., Codes]) -> None:
    asked = {"to": "image", "model": collection.generation().fingerprint}
    expected = _distances(collection.search(code(["q"]), 30, **asked))

    def search() -> list[list[list[int]]]:
        with Collection.open(pushed.address, pushed.model, consistency="Strong") as opened:
            return [_distances(opened.search(code(["q"]), 30, **asked)) for _ in range(20)]

    with ThreadPoolExecutor(2) as pool:
        assert [each.result() for each in (pool.submit(search), pool.submit(search))] == [[expected] * 20] * 2


def test_images_are_found_in_their_folder(pushed: Pushed, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "out").symlink_to("/")
    with Collection.open(pushed.address, pushed.model, pictures=tmp_path) as opened:
        item = opened.get("p7") or Item("absent")
        assert opened.picture_path(item) == tmp_path.resolve() / "p" / "7.jpg"
        assert opened.picture_path(Item("none")) is None
        with pytest.raises(InputError, match="leads out of"):
            opened.picture_path(Item("x", picture="out/etc/passwd"))


def test_without_an_image_folder_there_are_no_paths(collection: Collection) -> None:
    assert collection.picture_path(Item("x", picture="p/1.jpg")) is None


def test_invalid_queries_are_refused(collection: Collection, code: Callable[..., Codes]) -> None:
    model = collection.generation().fingerprint
    with pytest.raises(CodesError, match="model 0"):
        collection.search(code(["q"]), 1, to="text", model="0")
    with pytest.raises(CodesError, match="8 bits"):
        collection.search(code(["q"], "text", 8), 1, to="text", model=model)
    with pytest.raises(InputError, match="'sound'"):
        collection.search(code(["q"]), 1, to="sound", model=model)
    with pytest.raises(InputError, match=r'text="two dogs".* label= and id='):
        collection.search(code(["q"]), 1, to="text", model=model, where=Text("two dogs"))
    with pytest.raises(InputError, match="k = 0"):
        collection.search(code(["q"]), 0, to="text", model=model)


def test_another_model_is_refused(pushed: Pushed, new_model: Model, tmp_path: Path) -> None:
    new_model.save(tmp_path / "model")
    with pytest.raises(CodesError, match=f"{new_model.fingerprint}.*{pushed.library.generation().fingerprint}"):
        Collection.open(pushed.address, tmp_path / "model")


def test_a_collection_without_a_library_is_refused(pushed: Pushed, new_address: Callable[[], str]) -> None:
    address = new_address()
    with pytest.raises(RmshError, match="no such collection"):
        Collection.open(address, pushed.model)
    Table.create(Address.parse(address), 8).close()
    with pytest.raises(FormatError, match="index without items"):
        Collection.open(address, pushed.model)


def test_a_wrong_token_is_refused_and_not_shown(
    pushed: Pushed, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if not (os.environ.get("MILVUS_TOKEN") or os.environ.get("MILVUS_USER")):
        pytest.skip("this server does not authenticate")
    monkeypatch.delenv("MILVUS_USER", raising=False)
    monkeypatch.delenv("MILVUS_PASSWORD", raising=False)
    monkeypatch.setenv("MILVUS_TOKEN", "root:hunter2")
    with pytest.raises(RmshError, match="MILVUS_TOKEN") as refusal:
        Collection.open(pushed.address, pushed.model)
    assert "hunter2" not in str(refusal.value)
    assert capfd.readouterr() == ("", "")
