"""Damaged files: what a library answers after one file of it, or of its backup, was damaged.

Every answer is compared with that of a clean copy. It must be the same, or refused with an error of rmsh, or lack only
items about which a warning was logged. Full-text queries are the exception: a damaged text index may change them, but
`verify` must report it. Afterwards `repair` and `restore` are tried, and answers are compared again. Cases run in
processes of their own, because damage could end one.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from lab.data import PROJECT
from lab.faults.content import MODELS, make_codes, make_item
from lab.faults.questions import (
    ITEMS,
    OUTCOMES,
    Answers,
    Clean,
    answers_of,
    ask,
    fresh_answers,
    warnings_of_library,
)
from rmsh.library import Library
from rmsh.library.backup import _replace_content, backup, restore
from rmsh.library.database import connect_writer
from rmsh.library.maintenance import compact
from rmsh.library.recode import recode
from rmsh.library.repair import repair
from rmsh.library.schema import KEEP_ROWS
from rmsh.library.verify import verify
from rmsh.search.searcher import Searcher

DAMAGE = {"bit": 60, "noise": 10, "zeros": 10, "cut": 10, "deleted": 10}  # of a hundred cases
_WEIGHTS = {"items.sqlite": 12, "items.sqlite-wal": 5, "codes.snapshot": 3, "model.safetensors": 2, "config.json": 2}


@dataclass
class Case:
    """One damaged file, and what came of it."""

    number: int
    state: str
    file: str
    damage: str
    place: int
    live: bool  # damaged under an open reader
    reported: bool = False  # by verify
    outcome: str = "same"
    failures: list[str] = field(default_factory=list)

    def note(self, outcome: str, *failures: str) -> None:
        """Keep the worst outcome, and all failures."""
        self.outcome = max(self.outcome, outcome, key=OUTCOMES.index)
        self.failures += failures


def make_states(root: Path) -> None:
    """Libraries in several states, copied while another process could have been killed, and a backup."""
    model, other = MODELS.values()
    items = [make_item(f"n{i}", i * 37) for i in range(ITEMS)]
    live = root / "live"

    def copy(name: str) -> None:
        shutil.copytree(live, root / name)

    with Library.create(live, model) as library:
        library.add(items[:60], make_codes(items[:60], model.fingerprint), model=model.fingerprint)
        for name in ("report.json", "CREDIT.txt"):
            (live / name).write_text(json.dumps({"key": 1, "model": model.fingerprint, "warning": "near chance"}))
        library.remove(["n5"])
        compact(library)
        backup(library, root / "backup")
    copy("closed")
    with Library.open(live, writable=True) as library:
        for first in range(60, ITEMS, 10):
            batch = items[first : first + 10]
            library.add(batch, make_codes(batch, model.fingerprint), model=model.fingerprint)
        library.remove(["n7", "n67"])
        copy("killed")

        def encode(some: Any) -> Any:
            if "n50" in [item.id for item in some]:
                copy("recoding")
            return make_codes(some, other.fingerprint)

        recode(library, other, encode=encode, batch=16)

    def stopped(*arguments: Any, **options: Any) -> bool:
        done = _replace_content(*arguments, **options)
        copy("restoring")
        return done

    with mock.patch("rmsh.library.backup._replace_content", stopped):
        restore(root / "backup", live)
    shutil.rmtree(live)


STATES = ("closed", "killed", "recoding", "restoring", "backup")


def choose(root: Path, number: int, seed: int) -> Case:
    """A case: a state, a file, a kind of damage and a place."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311
    state = rng.choice(("closed", "killed", "killed", "recoding", "restoring", "backup"))
    paths = sorted(path for path in (root / state).rglob("*") if path.is_file() and path.stat().st_size)
    path = rng.choices(paths, [_WEIGHTS.get(path.name, 1) for path in paths])[0]
    (damage,) = rng.choices(list(DAMAGE), list(DAMAGE.values()))
    live = state != "backup" and not path.name.endswith("-shm") and rng.random() < 0.25
    used = np.flatnonzero(np.frombuffer(path.read_bytes(), np.uint8))  # the pages of a small database are mostly empty
    place = int(rng.choice(used)) * 8 + rng.randrange(8)
    return Case(number, state, path.relative_to(root / state).as_posix(), damage, place, live)


def apply_damage(path: Path, case: Case) -> None:
    """Damage a file in place."""
    if case.damage == "deleted":
        path.unlink()
        return
    content, at = bytearray(path.read_bytes()), case.place // 8
    if case.damage == "bit":
        content[at] ^= 1 << case.place % 8
    elif case.damage == "cut":
        del content[at:]
    else:
        begin, size = (at, 64) if case.damage == "noise" else (at // 512 * 512, 512)
        size = min(size, len(content) - begin)
        content[begin : begin + size] = np.random.default_rng(case.place).bytes(size) if size == 64 else bytes(size)
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


class Judge:
    """Runs cases, and says what came of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clean: dict[str, Clean] = {}
        for state in STATES:
            with tempfile.TemporaryDirectory() as work:
                self.clean[state] = Clean(shutil.copytree(root / state, Path(work) / "library"))

    def run(self, case: Case) -> None:
        """Damage a file of a copy, ask, verify, repair and restore."""
        with tempfile.TemporaryDirectory() as work:
            try:
                if case.state == "backup":
                    self._damaged_backup(Path(work), case)
                else:
                    self._damaged_library(Path(work), case)
            except Exception as error:  # that is what is looked for
                case.note("traceback", "".join(traceback.format_exception(error)[-4:])[-1200:])

    def _damaged_library(self, work: Path, case: Case) -> None:
        library = shutil.copytree(self.root / case.state, work / "library")
        with warnings_of_library() as warned:
            if case.live:
                with Searcher.open(library) as searcher:
                    answers_of(searcher)
                    apply_damage(library / case.file, case)
                    found = answers_of(searcher)
                self._compare(case, found, warned, ask(lambda: verify(library).problems))
            else:
                apply_damage(library / case.file, case)
            found, problems = fresh_answers(library), verify(library).problems
            case.reported = bool(problems)
            if self._compare(case, found, warned, problems) != "same" and not problems:
                case.note("wrong", f"verify finds no problem, but there are warnings or refusals: {warned[:2]}")
        if case.state != "restoring":
            self._repair(library, case)
        restored = ask(lambda: restore(self.root / "backup", library, replace=True))
        if isinstance(restored, list):
            case.note("wrong", f"restore was refused: {restored[1]}")
        elif self.clean["backup"].compare(fresh_answers(library), [], [])[0] != "same" or verify(library).problems:
            case.note("wrong", f"the restored library is not that of the backup: {verify(library).problems[:1]}")

    def _compare(self, case: Case, found: Answers, warned: list[str], problems: Sequence[str], state: str = "") -> str:
        outcome, wrong = self.clean[state or case.state].compare(found, warned, problems)
        case.note(outcome, *wrong)
        return outcome

    def _repair(self, library: Path, case: Case) -> None:
        """Repair a library; unless changes are lost, it answers as a clean one, without what could not be saved."""
        result = ask(lambda: repair(library))
        if isinstance(result, list) or any("has lost acknowledged" in each for each in result.lost):
            return
        with warnings_of_library() as warned:
            found, problems = fresh_answers(library), verify(library).problems
        outcome, wrong = self.clean[case.state].compare(found, [*warned, *result.restored, *result.lost], problems)
        if outcome == "wrong" or (problems and not result.lost):
            case.note("wrong", *wrong, f"after repair: {problems[:1]} {result.restored[:2]} {result.lost[:2]}")

    def _damaged_backup(self, work: Path, case: Case) -> None:
        """Repair a damaged library, and restore another one from a damaged backup."""
        library, whole = (shutil.copytree(self.root / "killed", work / name) for name in ("library", "whole"))
        copy = shutil.copytree(self.root / "backup", work / "backup")
        apply_damage(copy / case.file, case)
        _damage_rows(library)
        with warnings_of_library() as warned:
            ask(lambda: repair(library))
            problems = verify(library).problems
            self._compare(case, fresh_answers(library), [*warned, *problems], problems, "killed")
        is_refused = isinstance(ask(lambda: restore(copy, whole)), list)
        case.note("refused" if is_refused else "same")
        case.reported = is_refused
        with warnings_of_library() as warned:
            self._compare(case, fresh_answers(whole), warned, [], "killed" if is_refused else "backup")


def _damage_rows(library: Path) -> None:
    """Damage two items and the codes of two others, of which no copy is left."""
    with closing(connect_writer(library, timeout=0)) as connection:
        connection.execute("DROP TRIGGER item_kept")
        connection.execute("UPDATE items SET text = 'damaged' WHERE row IN (3, 4)")
        connection.execute("UPDATE codes SET text = zeroblob(length(text)) WHERE row IN (10, 11)")
        connection.execute(KEEP_ROWS)
    (library / "codes.snapshot").unlink()


def damage_files(root: Path, cases: int, *, seed: int) -> list[Case]:
    """Run so many cases, in as many processes as necessary."""
    make_states(root)
    Judge(root)  # raises if a state is not clean
    done: list[Case] = []
    while len(done) < cases:
        command = [sys.executable, "-m", "lab.faults.corruption", str(root), str(seed), str(len(done)), str(cases)]
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
            done += [Case(**json.loads(line)) for line in process.stdout or ()]
        if process.returncode:
            case = choose(root, len(done), seed)
            case.note("traceback", f"the process ended with {process.returncode}")
            done.append(case)
    return done


def summary(cases: list[Case]) -> dict[str, Any]:
    """Counts of outcomes by file and by kind of damage, and all failures."""
    files: defaultdict[str, Counter[str]] = defaultdict(Counter)
    damage: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        place = {"backup": "a backup", "restoring": "an interrupted restore"}.get(case.state, Path(case.file).name)
        for counts in (files[place], damage[case.damage]):
            counts.update([case.outcome, *["reported"] * case.reported])
    return {
        "cases": len(cases),
        "live": sum(case.live for case in cases),
        "outcomes": Counter(case.outcome for case in cases),
        "files": dict(sorted(files.items())),
        "damage": dict(sorted(damage.items())),
        "failures": [
            f"case {case.number} ({case.state}/{case.file}, {case.damage}): {failure}"
            for case in cases
            for failure in case.failures
        ],
    }


def main(root: Path, seed: int, first: int, last: int) -> None:
    """Run some cases and print them as lines of JSON."""
    logging.getLogger("rmsh.library").addHandler(logging.NullHandler())
    judge = Judge(root)
    for number in range(first, last):
        case = choose(root, number, seed)
        judge.run(case)
        print(json.dumps(asdict(case)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
