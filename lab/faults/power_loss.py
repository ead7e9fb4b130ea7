"""Lost power: what a disk may contain after it, from a record of all changes that a process made to files.

A preloaded shim (file_operations.c) records the changes of a writer. They are replayed up to some point; what was not
flushed by then is lost in one of three ways:

- ``dropped``: nothing of it is on the disk.
- ``names``: files and folders have their new names, but no data that was not flushed.
- ``mixed``: the first of the new names, and of the data any sectors of 512 bytes, in any order.

A flushed file has its data; a name is on the disk when its folder was flushed. Then the library is checked as after a
kill.
"""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

from lab.faults.kills import State, check, compile_shim, make_library, replay, run_writer
from lab.faults.writer import OPERATIONS

LOSSES = ("dropped", "names", "mixed")
_HEAD = struct.Struct("<cQQII")
_SECTOR = 512
_NEVER = 1 << 30  # changes until a writer is killed


class Change(NamedTuple):
    """A recorded change: kind, inode, offset or size, and two strings (see file_operations.c)."""

    kind: str
    inode: int
    number: int
    first: bytes
    second: bytes


def read_record(path: Path) -> list[Change]:
    """All changes of a record."""
    content, at, changes = path.read_bytes(), 0, list[Change]()
    while at < len(content):
        kind, inode, number, first, second = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        strings = content[at : at + first], content[at + first : at + first + second]
        changes.append(Change(kind.decode(), inode, number, *strings))
        at += first + second
    return changes


@dataclass
class File:
    """A file: its flushed content, and writes (offset and data) or new sizes (size and None) since."""

    content: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def flush(self) -> None:
        self.content, self.pending = self.after(self.pending), []

    def after(self, changes: list[tuple[int, bytes | None]]) -> bytes:
        """The content after some changes."""
        content = bytearray(self.content)
        for at, data in changes:
            size = at if data is None else max(len(content), at + len(data))
            content = content[:size].ljust(size, b"\0")
            if data is not None:
                content[at : at + len(data)] = data
        return bytes(content)

    def some(self, rng: random.Random) -> bytes:
        """The content with some sectors of what was not flushed, in another order."""
        sectors = list[tuple[int, bytes | None]]()
        for at, data in self.pending:
            parts = range(0, len(data or b"x"), _SECTOR)
            sectors += [(at + part, None if data is None else data[part : part + _SECTOR]) for part in parts]
        return self.after(rng.sample(sectors, rng.randint(0, len(sectors))))


class Folder(dict[str, "File | Folder"]):
    """The names in a folder that are on the disk; ``current`` has those that programs see."""

    def __init__(self) -> None:
        super().__init__()
        self.current: dict[str, File | Folder] = {}


Step = tuple[Folder, str, "File | Folder | None"]  # a name in a folder, and what it stands for from now on


class Disk:
    """Files and folders below a root, with what is flushed and what is not."""

    def __init__(self, root: Path) -> None:
        self.path = root
        self.root = Folder()
        self.by_inode: dict[int, File | Folder] = {root.stat().st_ino: self.root}
        self.names: list[list[Step]] = []  # not flushed, in their order; the steps of a rename are one
        for path in sorted(root.rglob("*")):
            found = Folder() if path.is_dir() else File(path.read_bytes())
            self.by_inode[path.stat().st_ino] = found
            parent, name = self._place(str(path))
            parent[name] = parent.current[name] = found

    def _place(self, path: str) -> tuple[Folder, str]:
        *above, name = Path(path).relative_to(self.path).parts
        folder = self.root
        for part in above:
            below = folder.current[part]
            if not isinstance(below, Folder):
                raise NotADirectoryError(path)
            folder = below
        return folder, name

    def apply(self, change: Change) -> None:
        """Make one change; those outside the root have no effect."""
        if change.kind in "CDUR":
            paths = [path.decode() for path in (change.first, change.second) if path]
            if all(Path(path).is_relative_to(self.path) for path in paths):
                self._rename(change, [self._place(path) for path in paths])
            return
        found = self.by_inode.get(change.inode)
        if isinstance(found, File) and change.kind in "WT":
            found.pending.append((change.number, change.first if change.kind == "W" else None))
        elif isinstance(found, File) and change.kind == "S":
            found.flush()
        elif isinstance(found, Folder) and change.kind == "S":
            self._flush(found)

    def _rename(self, change: Change, places: list[tuple[Folder, str]]) -> None:
        (folder, name), *target = places
        old = folder.current.get(name)
        if change.kind == "R":
            steps: list[Step] = [(folder, name, None), (*target[0], old)]
        elif change.kind == "U":
            steps = [(folder, name, None)]
        else:
            if old is not None and self.by_inode.get(change.inode) is old:
                return  # opened, not created
            new = self.by_inode[change.inode] = Folder() if change.kind == "D" else File()
            steps = [(folder, name, new)]
        for each, named, found in steps:
            _set(each.current, named, found)
        self.names.append(steps)

    def _flush(self, folder: Folder) -> None:
        """Flush the names in a folder; a rename between two folders is flushed with either."""
        left = []
        for steps in self.names:
            if not any(each is folder for each, _, _ in steps):
                left.append(steps)
                continue
            for each, name, found in steps:
                _set(each, name, found)
        self.names = left

    def lose_power(self, to: Path, loss: str, rng: random.Random) -> None:
        """Write what the disk may contain to a folder."""
        kept = {"dropped": 0, "names": len(self.names), "mixed": rng.randint(0, len(self.names))}[loss]
        names: dict[int, dict[str, File | Folder]] = {}  # of folders, by identity
        for steps in self.names[:kept]:
            for folder, name, found in steps:
                _set(names.setdefault(id(folder), dict(folder)), name, found)

        def write(folder: Folder, to: Path) -> None:
            to.mkdir(parents=True)
            for name, found in names.get(id(folder), folder).items():
                if isinstance(found, Folder):
                    write(found, to / name)
                else:
                    (to / name).write_bytes(found.some(rng) if loss == "mixed" else found.content)

        write(self.root, to)


def _set(names: dict[str, File | Folder], name: str, found: File | Folder | None) -> None:
    """Make a name stand for something, or for nothing any more."""
    if found is None:
        names.pop(name, None)
    else:
        names[name] = found


@dataclass
class Tally:
    """Counts over all points."""

    points: int = 0
    during: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    changes: int = 0  # to files, recorded
    acknowledged: Counter[str] = field(default_factory=Counter)
    kept_unacknowledged: int = 0
    failures: list[str] = field(default_factory=list)


def lose_power(root: Path, points: int, *, seed: int, writers: int | None = None) -> Tally:
    """Record writers, and check what is left of their libraries after so many losses of power."""
    root.mkdir(parents=True, exist_ok=True)
    shim, tally, numbers = compile_shim(root), Tally(), count()
    writers = min(points, len(OPERATIONS) if writers is None else writers)
    for writer in range(writers):
        own = root / f"writer-{writer}"
        folder, state = make_library(own)
        disk, done, operation = Disk(own), 0, OPERATIONS[writer % len(OPERATIONS)]
        *_, error = run_writer(folder, shim, seed + writer + 1, operation, _NEVER, record=root / "record")
        if error is not None:
            tally.failures.append(f"writer {writer}: {error}")
        changes = read_record(root / "record")
        (root / "record").unlink()
        rng = random.Random(f"{seed} {writer}")  # noqa: S311
        for at in _points(changes, points * (writer + 1) // writers - points * writer // writers, rng):
            for change in changes[done:at]:
                disk.apply(change)
            done, number = at, next(numbers)
            _check_point(disk, changes[:at], state, root / f"point-{number}", LOSSES[number % 3], rng, tally)
        tally.changes += len(changes)
    return tally


def _points(changes: list[Change], wanted: int, rng: random.Random) -> list[int]:
    """Increasing points, three of four within the last operation."""
    marks = [at for at, change in enumerate(changes) if change.kind == "M" and b'"begin"' in change.first]
    last = marks[-1]
    return sorted(
        rng.randrange(1, len(changes)) if n % 4 == 0 else rng.randrange(last, len(changes)) for n in range(wanted)
    )


def _check_point(
    disk: Disk, changes: list[Change], state: State, to: Path, loss: str, rng: random.Random, tally: Tally
) -> None:
    reports = [json.loads(change.first) for change in changes if change.kind == "M"]
    interrupted = reports[-1] if reports and "begin" in reports[-1] else None
    state = replay(state, reports, tally.acknowledged)
    disk.lose_power(to, loss, rng)
    found, problems = check(to / "library", state, interrupted)
    during = interrupted["begin"] if interrupted else "between operations"
    tally.points += 1
    tally.during[during] += 1
    tally.losses[loss] += 1
    tally.kept_unacknowledged += found != state
    tally.failures += [f"point {tally.points} ({during}, {loss}): {problem}" for problem in problems[:3]]
