"""Pushing a library: changes are brought, what was cut off goes on, other libraries and models are kept apart."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rmsh.cli.main import run
from rmsh.codes import Codes
from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.progress import Progress
from rmsh.library import Item, Library
from rmsh.library.recode import recode
from rmsh.milvus.collection import Collection
from rmsh.milvus.connection import Address
from rmsh.milvus.push import push
from rmsh.milvus.table import Table
from rmsh.model import Model

pytestmark = pytest.mark.milvus

NewAddress = Callable[[], str]
Fill = Callable[[Library, list[str]], None]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.milvus.push._ROWS", 40)
    monkeypatch.setattr("rmsh.milvus.push._BATCH", 200)


def _names(count: int) -> list[str]:
    return [f"n{i}" for i in range(count)]


def _assert_same(library: Library, address: str, code: Callable[..., Codes]) -> None:
    """Every code and every item is there, and nothing else."""
    with Collection.open(address, library.folder / "model", consistency="Strong") as opened:
        generation = library.generation()
        assert (opened.count(), opened.generation()) == (library.count(), generation)
        query = code(["q"], "text", generation.bits)
        for to in ("image", "text"):
            ours, theirs = (
                place.search(query, 1000, to=to, model=generation.fingerprint) for place in (opened, library)
            )
            assert ours == theirs


def test_changes_are_brought_and_nothing_is_written_twice(
    library: Library, fill: Fill, model: Model, code: Callable[..., Codes], new_address: NewAddress
) -> None:
    address, reports = new_address(), list[Progress]()
    fill(library, _names(100))
    first = push(library, address, on_progress=reports.append)
    assert (first.written, first.removed, first.former) == (200, 0, [])
    assert [(report.done, report.total) for report in reports] == [(1, 3), (2, 3), (3, 3)]
    _assert_same(library, address, code)
    again = push(library, address)
    assert (again.written, again.removed, again.collection) == (0, 0, first.collection)
    library.remove(["n3", "n50"])
    library.add(
        [Item("n7", text=None, picture="7.jpg")],
        {"image": code(["n7"], "image")},
        model=model.fingerprint,
        replace=True,
    )
    fill(library, ["new"])
    changed = push(library, address)
    assert (changed.written, changed.removed) == (3, 6)
    _assert_same(library, address, code)


_KILLED = """
import os, signal, sys
from pathlib import Path
from rmsh.library import Library
from rmsh.milvus import push
from rmsh.milvus.table import Table

done, written = Table.upsert, 0

def upsert(self, entities, **where):
    global written
    done(self, entities, **where)
    written += len(entities)
    if written > 60:
        os.kill(os.getpid(), signal.SIGKILL)

Table.upsert = upsert
push._ROWS, push._BATCH = 40, 200
with Library.open(sys.argv[1]) as library:
    push.push(library, sys.argv[2])
"""


def test_a_push_that_was_killed_goes_on_and_is_not_seen_before_it_is_whole(
    library: Library, fill: Fill, code: Callable[..., Codes], new_address: NewAddress
) -> None:
    address = new_address()
    fill(library, _names(100))
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(library.folder), address], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(RmshError, match="no such collection"):
        Collection.open(address, library.folder / "model")
    assert 0 < push(library, address).written < 140
    _assert_same(library, address, code)


def test_a_collection_whose_making_was_cut_off_is_completed(
    library: Library,
    fill: Fill,
    code: Callable[..., Codes],
    new_address: NewAddress,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = new_address()
    fill(library, _names(5))
    with monkeypatch.context() as patch:
        patch.setattr("rmsh.milvus.table.Table.prepare", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            push(library, address)
    assert push(library, address).written == 10
    _assert_same(library, address, code)


def test_a_library_that_was_put_back_from_a_backup_is_what_the_collection_becomes(
    library: Library, fill: Fill, code: Callable[..., Codes], new_address: NewAddress, tmp_path: Path
) -> None:
    from rmsh.library.backup import backup

    address = new_address()
    fill(library, _names(30))
    backup(library, tmp_path / "copy")
    fill(library, [f"lost{i}" for i in range(60)])
    push(library, address)
    with Library.open(tmp_path / "copy", writable=True) as restored:
        fill(restored, ["other"])  # takes a row that a lost item had
        done = push(restored, address)
        assert (done.written, done.removed) == (2, 118)
        _assert_same(restored, address, code)


def test_codes_of_another_model_get_a_collection_of_their_own(
    library: Library, fill: Fill, new_model: Model, code: Callable[..., Codes], new_address: NewAddress
) -> None:
    address = new_address()
    fill(library, _names(20))
    first = push(library, address)
    reader = Collection.open(address, library.folder / "model", consistency="Strong")
    recode(library, new_model, encode=lambda items: {"text": code([item.id for item in items], "text", 24)})
    second = push(library, address)
    assert (second.written, second.former) == (20, [first.collection])
    _assert_same(library, address, code)
    asked = {"to": "text", "model": reader.generation().fingerprint}
    assert len(reader.search(code(["q"]), 50, **asked)[0]) == 20  # it stays with what it opened
    assert push(library, address, drop_former=True).former == []
    with pytest.raises(RmshError, match="no such collection"):
        reader.search(code(["q"]), 50, **asked)


def test_an_empty_library_is_pushed_and_its_place_is_not_given_to_another(
    library: Library, model: Model, code: Callable[..., Codes], new_address: NewAddress, tmp_path: Path
) -> None:
    address = new_address()
    assert push(library, address).written == 0
    _assert_same(library, address, code)
    with (
        Library.create(tmp_path / "other", model) as other,
        pytest.raises(InputError, match="another library"),
    ):
        push(other, address)
    assert push(library, address).written == 0


def test_an_approximate_collection_is_neither_filled_nor_searched(library: Library, new_address: NewAddress) -> None:
    address, generation = Address.parse(new_address()), library.generation()
    target = Address(address.server, f"{address.name}_{generation.fingerprint}")
    Table.create(target, generation.bits, lists=4, model=generation.fingerprint, generation=1, library="x").close()
    with pytest.raises(FormatError, match=f"{target} has 4 lists"):
        push(library, str(address))
    with pytest.raises(FormatError, match=f"{target} has 4 lists"):
        Collection.open(str(target), library.folder / "model")


def test_the_command_pushes_and_search_finds(
    library: Library, fill: Fill, new_address: NewAddress, capsys: pytest.CaptureFixture[str]
) -> None:
    address, folder = new_address(), str(library.folder)
    fill(library, ["a", "b"])
    assert run(["library", "push", folder, "--to", address, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == 4
    assert run(["library", "push", folder, "--to", address]) == 0
    assert "0 codes written, 0 removed" in capsys.readouterr().out
    words = ["search", address, "--model", f"{folder}/model", "--like", "a", "--to", "texts", "--json", "--quiet"]
    assert run(words) == 0
    assert [hit["id"] for hit in json.loads(capsys.readouterr().out)["hits"]] == ["b"]


def test_changes_during_a_push_are_brought_too(
    library: Library, fill: Fill, model: Model, code: Callable[..., Codes], new_address: NewAddress
) -> None:
    address, changed = new_address(), list[int]()
    fill(library, _names(100))

    def change(progress: Progress) -> None:
        if not changed:
            changed.append(progress.done)
            fill(library, [f"later{i}" for i in range(50)])
            library.remove(["n99", "n0"])
            library.add([Item("n1", text="new")], {"text": code(["n1"], "text")}, model=model.fingerprint, replace=True)

    push(library, address, on_progress=change)
    _assert_same(library, address, code)
    assert (push(library, address).written, library.count()) == (0, 148)


def test_two_pushes_at_once_are_refused_and_a_lock_that_was_left_behind_is_not(
    library: Library, fill: Fill, new_address: NewAddress
) -> None:
    address, told = new_address(), list[str]()
    fill(library, ["a"])

    def again(_progress: Progress) -> None:
        other = [sys.executable, "-m", "rmsh", "library", "push", str(library.folder), "--to", address]
        told.append(subprocess.run(other, capture_output=True, text=True).stderr)

    push(library, address, on_progress=again)
    assert f"{address} is being pushed by process {os.getpid()} on {socket.gethostname()}" in told[0]
    parsed = Address.parse(address)
    lock = Address(parsed.server, f"{parsed.name}_push")
    Table.create(lock, 8, host=socket.gethostname(), process=2**22 + 1, since="before").close()  # no such process
    assert push(library, address).written == 0
    assert Table.find(lock) is None
    Table.create(lock, 8, host="elsewhere", process=1, since="before").close()
    with pytest.raises(RmshError, match=f"process 1 on elsewhere.*drop {lock.name}"):
        push(library, address)
    Table(lock).drop()


def test_shards_are_pushed_and_pushed_again_only_where_they_changed(
    model: Model, code: Callable[..., Codes], new_address: NewAddress, tmp_path: Path
) -> None:
    from rmsh.shards import MOST_ITEMS, Shards

    def write(counts: list[int]) -> Shards:
        entries = []
        for number, count in enumerate(counts):
            names = [f"{number}-{row}" for row in range(count)]
            codes = {f"{m}_code": [bytes(one) for one in code(names, m).packed] for m in ("image", "text")}
            blank: dict[str, list[Any]] = {"text": ["a"] * count, "picture": [None] * count, "labels": [["x"]] * count}
            path = tmp_path / "shards" / f"{number}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": names, **blank, **codes}), path)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            entries.append({"name": str(number), "items": count, "bytes": path.stat().st_size, "sha256": digest})
        about = {"format": "rmsh-shards", "version": 1, "id": "x", "model": model.fingerprint, "bits": model.bits}
        (tmp_path / "shards" / "manifest.json").write_text(json.dumps(about | {"shards": entries}))
        return Shards.open(tmp_path / "shards")

    address = new_address()
    model.save(tmp_path / "shards" / "model")
    assert push(write([30, 0, 20]), address).written == 100
    assert push(write([30, 0, 20]), address).written == 0
    done = push(write([29, 1, 20]), address)
    assert (done.written, done.removed) == (2, 2)
    assert push(write([29, 1]), address).removed == 40
    with Collection.open(address, tmp_path / "shards" / "model", consistency="Strong") as opened:
        assert opened.count() == 30
        (hits,) = opened.search(code(["1-0"], "text"), 1, to="text", model=model.fingerprint)
        assert [(hit.item.id, hit.row, hit.distance) for hit in hits] == [("1-0", MOST_ITEMS, 0)]
    assert run(["library", "push", str(tmp_path / "shards"), "--to", address, "--quiet"]) == 0


def test_a_call_is_repeated_while_the_server_is_unavailable(
    library: Library,
    fill: Fill,
    code: Callable[..., Codes],
    new_address: NewAddress,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from pymilvus import MilvusClient, MilvusException

    original, failures = MilvusClient.upsert, [MilvusException(2, "service unavailable")] * 3

    def upsert(self: Any, *arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return original(self, *arguments, **options)

    monkeypatch.setattr(MilvusClient, "upsert", upsert)
    monkeypatch.setattr("rmsh.milvus.table._PAUSE", 0.01)
    fill(library, ["a", "b"])
    address = new_address()
    assert push(library, address).written == 4
    assert not failures
    (told,) = caplog.messages
    assert "service unavailable" in told
    assert "10 minutes" in told
    _assert_same(library, address, code)


def test_a_wrong_token_is_told_apart_from_a_server_that_is_not_there(
    library: Library, new_address: NewAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", "root:wrong")
    with pytest.raises(RmshError, match=r"rejects the credentials"):
        push(library, new_address())


def test_a_database_is_apart_from_the_others(
    library: Library,
    fill: Fill,
    code: Callable[..., Codes],
    milvus_server: str,
    new_address: NewAddress,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rmsh.milvus.connection import Settings, connect

    address = new_address()
    database = address.rpartition("/")[2]
    client = connect(milvus_server, Settings.read())
    client.create_database(database)
    fill(library, ["a"])
    with monkeypatch.context() as patch:
        patch.setenv("MILVUS_DB", database)
        done = push(library, address)
        _assert_same(library, address, code)
        inside = connect(milvus_server, Settings.read())
        inside.drop_alias(database)
        inside.drop_collection(done.collection)
    with pytest.raises(RmshError, match="no such collection"):
        Collection.open(address, library.folder / "model")
    client.drop_database(database)
