"""What happens to real machines: each gives one sentence that says what to do, and loses nothing."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError, RmshError
from rmsh.library import Item, Library, database
from rmsh.library.database import translate_errors
from rmsh.library.schema import VERSION
from rmsh.library.verify import verify
from rmsh.model import Model

Fill = Callable[..., None]
Code = Callable[..., Codes]

# A full disk: the library has one item; a batch of large texts does not fit any more.


def _large(names: list[str]) -> list[Item]:
    return [Item(name, text=name * 50_000) for name in names]


def test_a_full_database_keeps_nothing_of_a_batch_and_loses_nothing(library: Library, folder: Path, code: Code) -> None:
    names = [f"n{number}" for number in range(20)]
    model = library.generation().fingerprint
    with library.maintenance() as connection:
        connection.execute("PRAGMA max_page_count = 100")
    library.add([Item("a", text="small")], {"text": code(["a"])}, model=model)
    with pytest.raises(RmshError, match="is full"):
        library.add(_large(names), {"text": code(names)}, model=model)
    assert (library.count(), verify(folder).problems) == (1, ())
    with library.maintenance() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    library.add(_large(names), {"text": code(names)}, model=model)
    assert library.count() == 21


LIMITED = """
import resource, sys
from rmsh.library import Item, Library, database
from rmsh.codes import Codes
from rmsh.core.errors import RmshError
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
with Library.open(sys.argv[1], writable=True) as library:
    codes = Codes.from_values([[1.0] * 16], ids=["large"])
    try:
        library.add([Item("large", text="long " * 200_000)], {"text": codes}, model=sys.argv[2])
    except RmshError as error:
        print(error)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of files")
def test_a_write_that_the_system_refuses_loses_nothing(
    library: Library, folder: Path, model: Model, fill: Fill
) -> None:
    fill(library, ["a"])
    library.close()
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder), model.fingerprint], capture_output=True, text=True, check=True
    )
    assert "failed (disk I/O error); nothing was changed" in done.stdout
    assert verify(folder).problems == ()
    with Library.open(folder) as reader:
        assert reader.count() == 1


# A read-only folder. Root may write anywhere, so the program becomes nobody once it has imported what it needs.

READ_ONLY = """
import os, sys
import numpy as np
from rmsh.codes import Codes
from rmsh.core.errors import RmshError
from rmsh.index.scan import Scan
from rmsh.library import Library
from rmsh.library.verify import verify
from pathlib import Path
codes = Codes(np.zeros((1, 2), np.uint8), 16, ["q"])
Scan.over(np.zeros((1, 1), np.uint64), 16).search(codes, 1)
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
folder = sys.argv[1]
with Library.open(folder) as library:
    print(library.count(), library.search(codes, 1, to="text", model=library.generation().fingerprint)[0][0].item.id)
    input()
    print(library.count(), flush=True)
print(verify(Path(folder)))
try:
    Library.open(folder, writable=True).remove(["a"])
except RmshError as error:
    print(error)
"""


@pytest.fixture
def read_only(model: Model, fill: Fill) -> Iterator[Path]:
    """A library that nobody but its owner may change, in a folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "library"
        with Library.create(folder, model) as library:
            fill(library, ["a"])
        os.chmod(outer, 0o755)  # noqa: S103
        _forbid(folder)
        yield folder
        _allow(folder)


def _forbid(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def _allow(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no folders that are read-only in this sense")
def test_a_read_only_library_is_searched_and_verified_and_says_why_it_is_not_changed(
    read_only: Path, fill: Fill
) -> None:
    program = [sys.executable, "-u", "-c", READ_ONLY, str(read_only)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1 a\n"
        _allow(read_only)  # its owner goes on writing
        with Library.open(read_only, writable=True) as library:
            fill(library, ["b"])
        _forbid(read_only)
        later, verified, refused = reader.communicate("go on\n")[0].splitlines()
    assert later == "2"
    assert "problems=()" in verified
    assert "cannot be opened or written (" in refused
    assert "make the folder writable" in refused


def test_what_was_read_without_locks_while_others_wrote_does_not_count(
    library: Library, folder: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(library, ["a"])
    with library.maintenance() as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def connect(path: Path) -> sqlite3.Connection:
        return database._connect(path / "items.sqlite", "immutable=1", kind=database._Unlocked)

    monkeypatch.setattr(database, "connect_reader", connect)
    with Library.open(folder) as reader:
        assert reader.count() == 1
        with pytest.raises(RmshError, match="without locks"):
            _write_while_reading(reader, lambda: fill(library, ["b"]))


def _write_while_reading(reader: Library, write: Callable[[], None]) -> None:
    with reader.reading():
        write()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (errno.ENOSPC, "is full"),
        (errno.EROFS, "cannot be opened or written"),
        (errno.EIO, "cannot be read or written"),
    ],
)
def test_what_the_system_reports_is_one_sentence(fault: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(RmshError, match=words), translate_errors(tmp_path):
        raise OSError(fault, os.strerror(fault))


def test_a_mistake_of_ours_is_not_dressed_up(library: Library) -> None:
    with pytest.raises(sqlite3.OperationalError, match="syntax error"), library.reading() as connection:
        connection.execute("SELECT FROM")
    assert library.count() == 0


# A damaged database.


def test_a_file_that_is_no_database_is_named(library: Library, folder: Path) -> None:
    library.close()
    (folder / "items.sqlite").write_bytes(b"not a database at all" * 500)
    with pytest.raises(
        FormatError, match=r"is damaged \(file is not a database\); restore a backup with `rmsh library restore`"
    ):
        Library.open(folder)
    assert "is damaged" in verify(folder).problems[0]


def test_a_damaged_page_is_named_by_who_meets_it(library: Library, folder: Path, fill: Fill) -> None:
    fill(library, [f"n{number}" for number in range(300)])
    library.close()
    path = folder / "items.sqlite"
    content = bytearray(path.read_bytes())
    for page in range(4, len(content) // 4096):
        content[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(content)
    assert any("is damaged" in problem for problem in verify(folder).problems)
    with (
        pytest.raises(FormatError, match=r"is damaged \(database disk image is malformed"),
        Library.open(folder) as reader,
    ):
        reader.get("n7")


def test_a_database_of_another_program_is_refused(library: Library, folder: Path) -> None:
    library.close()
    (folder / "items.sqlite").unlink()
    sqlite3.connect(folder / "items.sqlite").execute("CREATE TABLE t (a)").connection.close()
    with pytest.raises(FormatError, match=r"items\.sqlite was not written by rmsh"):
        Library.open(folder)


@pytest.mark.parametrize("content", ["[]", '{"format": "rmsh index", "version": 1}', "{"], ids=["list", "index", "cut"])
def test_a_manifest_of_something_else_is_refused(content: str, *, library: Library, folder: Path) -> None:
    (folder / "manifest.json").write_text(content)
    with pytest.raises(FormatError, match="manifest"):
        Library.open(folder)


# Newer formats.


def test_a_manifest_of_a_newer_rmsh_is_refused(library: Library, folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "version": VERSION + 1}))
    with pytest.raises(FormatError, match=f"version {VERSION + 1} of 'rmsh library'"):
        Library.open(folder)


def test_a_database_of_a_newer_rmsh_is_refused(library: Library, folder: Path) -> None:
    with library.maintenance() as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(FormatError, match=rf"format {VERSION + 1}, .*up to format {VERSION}"):
        Library.open(folder)
