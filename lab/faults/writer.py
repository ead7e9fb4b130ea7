"""The process that is killed, or whose file operations are recorded: it changes a library and reports every change.

Run as ``python -m lab.faults.writer FOLDER SEED OPERATION CHANGES`` with the preloaded file_operations.c: after a few
operations of any kind comes OPERATION, in which the process is killed after so many changes to files.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lab.faults.content import MODELS, make_codes, make_item
from rmsh.core.files import read_json, write_json
from rmsh.library import Item, Library, snapshot
from rmsh.library.backup import backup, restore
from rmsh.library.database import connect_writer
from rmsh.library.maintenance import compact, upgrade
from rmsh.library.queries import facts_of
from rmsh.library.recode import recode
from rmsh.library.repair import repair

MILVUS = os.environ.get("MILVUS_URI")
OPERATIONS: tuple[str, ...] = ("add", "update", "remove", "recode", "compact", "backup", "restore", "repair", "upgrade")
OPERATIONS += ("push",) if MILVUS else ()

# Damage that `rmsh library repair` mends without a backup, given a current snapshot.
_DAMAGE = (
    "UPDATE codes SET text = zeroblob(4) WHERE row % 7 = 0 AND generation = (SELECT generation FROM library)",
    "UPDATE labels SET count = count + 1",
    "DELETE FROM texts_data WHERE id > 10",
    "UPDATE changes SET first = first + 1 WHERE seq = (SELECT max(seq) FROM changes)",
)

_DOWNGRADE = (  # to format 2
    "ALTER TABLE codes DROP COLUMN vectors",
    "UPDATE codes SET checksum = codes_checksum(row, generation, image, text)",
    "ALTER TABLE library DROP COLUMN checksum",
    "ALTER TABLE changes DROP COLUMN checksum",
    *(f"ALTER TABLE labels DROP COLUMN {name}" for name in ("count", "total", "checksum")),
    "PRAGMA user_version = 2",
)
_DROP_STORE = "ALTER TABLE library DROP COLUMN store"


def main(folder: Path, seed: int, favourite: str, changes: int) -> None:
    """Change a library until the process is killed, or its operation is finished."""
    snapshot._FEW = 40  # so that snapshots are written often
    files = ctypes.CDLL(None)  # with the functions of file_operations.c
    rng = random.Random(seed)  # noqa: S311
    for number in range(sys.maxsize):
        is_last = number == 3 + seed % 3
        operation = favourite if is_last else rng.choice(OPERATIONS)
        begun = _begin(folder, operation, rng, f"{seed}.{number}")
        _report(begun)
        before = files.faults_count()
        if is_last:
            files.faults_kill_after(changes)
        with _done(folder, begun):
            _report({"end": operation, "changes": files.faults_count() - before})
        if is_last:
            break


def _begin(folder: Path, operation: str, rng: random.Random, fresh: str) -> dict[str, Any]:
    """A report of what is about to happen."""
    with Library.open(folder, writable=operation == "repair") as library:
        with library.reading() as connection:
            names = sorted(name for (name,) in connection.execute("SELECT id FROM items"))
        if operation == "repair":
            library.write_snapshot()
    ids: list[str] = []
    if operation == "add":
        ids = [f"{fresh}.{i}" for i in range(rng.randint(1, 30))]
    elif operation in ("update", "remove"):  # so few that the library neither empties nor grows without limit
        ids = rng.sample(names, rng.randint(0, len(names) // 8))
    return {"begin": operation, "ids": ids, "version": rng.randrange(1000), "name": f"backup-{fresh}"}


@contextmanager
def _done(folder: Path, begun: Mapping[str, Any]) -> Iterator[None]:
    """Do what was reported; inside the block it is done, but the library may still be open."""
    operation, version = begun["begin"], begun["version"]
    if operation == "restore":
        restore(backups_of(folder.parent)[-1], folder)
    elif operation == "repair":
        _change_database(folder, _DAMAGE[version % len(_DAMAGE) :][:1])
        repair(folder)
    elif operation == "upgrade":
        with closing(sqlite3.connect(folder / "items.sqlite")) as connection:
            columns = [column for _, column, *_ in connection.execute("PRAGMA table_info(library)")]
        _change_database(folder, (*_DOWNGRADE, *[_DROP_STORE] * ("store" in columns)))  # an upgraded one has none
        write_json(folder / "manifest.json", {**read_json(folder / "manifest.json"), "version": 2})
        upgrade(folder)
    else:
        with Library.open(folder, writable=True) as library:
            _change(library, operation, [make_item(name, version) for name in begun["ids"]], folder, begun["name"])
            yield
        return
    yield


def backups_of(root: Path) -> list[Path]:
    """The backups below a folder, oldest first."""
    return sorted(root.glob("backup-*"), key=lambda path: [int(part) for part in path.name[7:].split(".")])


def _change_database(folder: Path, statements: Sequence[str]) -> None:
    with closing(connect_writer(folder, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)
        connection.execute("COMMIT")


def _change(library: Library, operation: str, items: Sequence[Item], folder: Path, name: str) -> None:
    current = library.generation().fingerprint
    if operation == "remove":
        library.remove(item.id for item in items)
    elif operation == "compact":
        compact(library)
    elif operation == "backup":
        backup(library, folder.parent / name)
    elif operation == "push":
        push_to_milvus(library)
    elif operation == "recode":
        (other,) = MODELS.keys() - {current}
        recode(library, MODELS[other], encode=lambda some: make_codes(some, other), batch=16)
    else:
        library.add(items, make_codes(items, current), model=current, replace=operation != "add")


def push_to_milvus(library: Library) -> int:
    """Push a library to the server of MILVUS_URI; returns how many codes were written or removed."""
    from rmsh.milvus.push import push

    with library.reading() as connection:
        name = f"faults_{facts_of(connection).id}"
    done = push(library, f"{MILVUS}/{name}", drop_former=True)
    return done.written + done.removed


def _report(what: Mapping[str, Any]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
