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
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lab.data import PROJECT
from lab.faults.content import MODELS, WORDS, make_codes, make_item, make_model
from rmsh.core.errors import RmshError
from rmsh.core.types import MODALITIES
from rmsh.index.filters import Id, Label, Text
from rmsh.library import Library
from rmsh.library import backup as backups
from rmsh.library.backup import backup, restore
from rmsh.library.database import connect_writer
from rmsh.library.export import export_parquet
from rmsh.library.maintenance import compact, describe
from rmsh.library.recode import recode
from rmsh.library.repair import repair
from rmsh.library.schema import KEEP_ROWS
from rmsh.library.verify import verify
from rmsh.search.searcher import Searcher

ITEMS = 150
DAMAGE = {"bit": 60, "noise": 10, "zeros": 10, "cut": 10, "deleted": 10}  # of a hundred cases
WITH_WORDS = {"worded", "best"}  # answers that use the text index
_WEIGHTS = {"items.sqlite": 12, "items.sqlite-wal": 5, "codes.snapshot": 3, "model.safetensors": 2, "config.json": 2}
_BAD = ("wrong", "traceback")

Answers = dict[str, Any]


@dataclass
class Case:
    """One damaged file, and what came of it."""

    number: int
    state: str
    file: str
    damage: str
    place: int
    live: bool  # damaged under an open reader
    outcome: str = "same"
    failures: list[str] = field(default_factory=list)


def make_states(root: Path) -> None:
    """Libraries in several states, copied while another process could have been killed, and a backup."""
    model, other = MODELS.values()
    items = [make_item(f"n{i}", i * 37) for i in range(ITEMS)]
    live = root / "live"

    def copy(name: str) -> None:
        shutil.copytree(live, root / name)

    with Library.create(live, model) as library:
        library.add(items[:100], make_codes(items[:100], model.fingerprint), model=model.fingerprint)
        for name in ("report.json", "CREDIT.txt"):
            (live / name).write_text(json.dumps({"key": 1, "model": model.fingerprint, "warning": "near chance"}))
        library.remove(["n5"])
        compact(library)
        backup(library, root / "backup")
    copy("closed")
    with Library.open(live, writable=True) as library:
        for first in range(100, ITEMS, 10):
            batch = items[first : first + 10]
            library.add(batch, make_codes(batch, model.fingerprint), model=model.fingerprint)
        library.remove(["n7", "n107"])
        copy("killed")

        def encode(some: Any) -> Any:
            if "n50" in [item.id for item in some]:
                copy("recoding")
            return make_codes(some, other.fingerprint)

        recode(library, other, encode=encode, batch=16)
    replacing = backups.finish_replacing

    def stopped(folder: Path) -> None:
        copy("restoring")
        replacing(folder)

    backups.finish_replacing = stopped
    try:
        restore(root / "backup", live)
    finally:
        backups.finish_replacing = replacing
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
    place = rng.randrange(path.stat().st_size * 8)
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


@contextmanager
def warnings_of_library() -> Iterator[list[str]]:
    """Collects what the library logs."""
    messages: list[str] = []
    handler, log = logging.Handler(), logging.getLogger("rmsh.library")
    handler.emit = lambda entry: messages.append(entry.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    log.propagate = False
    try:
        yield messages
    finally:
        log.removeHandler(handler)


def ask(question: Callable[[], Any]) -> Any:
    """An answer, or "refused" and a sentence; any error but one of rmsh is raised."""
    try:
        return question()
    except RmshError as error:
        if "\n" in str(error):
            raise
        return ["refused", str(error)]


def answers_of(searcher: Searcher) -> Answers:
    """Answers of an open library to questions of every kind, as lists that begin with an ID where that is possible."""
    library: Any = searcher.store
    names = [f"n{i}" for i in range(ITEMS)]
    fingerprint = ask(lambda: library.generation().fingerprint)
    if isinstance(fingerprint, list):
        return {"model": fingerprint}
    queries = make_codes([make_item("query", 17)], fingerprint)

    def hits(found: Any) -> list[Any]:
        return [[hit.item.id, hit.distance, repr(hit)] for hit in found]

    def nearest(to: Any, **options: Any) -> list[Any]:
        return hits(library.search(queries["text"], ITEMS, to=to, model=fingerprint, **options)[0])

    answers: dict[str, Callable[[], Any]] = {
        "count": library.count,
        "encoded": lambda: searcher.text("a dog").codes.packed.tolist(),
        "nearest image": lambda: nearest("image"),
        "nearest text": lambda: nearest("text"),
        "labelled": lambda: nearest("text", where=Label("v1")),
        "not labelled": lambda: nearest("text", where=~Label("v1")),
        "with ID": lambda: nearest("text", where=Id("n9") | Id("n109")),
        "within": lambda: hits(library.within(queries["text"], 16, to="text", model=fingerprint)[0]),
        "worded": lambda: nearest("text", where=Text(WORDS[0])),
        "best": lambda: hits(searcher.search(searcher.text(f"{WORDS[1]} {WORDS[0]}"), ITEMS, to="text")),
        "like": lambda: hits(searcher.search(searcher.item("n9"), ITEMS, to="image")),
        "exported": lambda: _export(library),
    }
    for modality in MODALITIES:
        answers[f"{modality} codes"] = lambda modality=modality: _codes(library, names, modality)
    found = {name: ask(question) for name, question in answers.items()}
    found["items"] = [[name, repr(ask(lambda name=name: library.get(name)))] for name in names]
    found["paths"] = [[name, repr(ask(lambda name=name: _path(library, name)))] for name in names[:9]]
    for other in (lambda: describe(library), library.warning, library.credit):  # only for errors
        ask(other)
    return found


def _codes(library: Library, names: list[str], modality: Any) -> list[Any]:
    codes = library.codes(names, modality)
    return [[str(name), code.tobytes().hex()] for name, code in zip(codes.ids, codes.packed, strict=True)]


def _path(library: Library, name: str) -> str | None:
    item = library.get(name)
    path = None if item is None else library.picture_path(item)
    return None if path is None else path.name


def _export(library: Library) -> list[Any]:
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        export_parquet(library, Path(folder) / "out.parquet")
        rows = pq.read_table(Path(folder) / "out.parquet").to_pylist()
    return [[row["id"], repr(row)] for row in rows]


def fresh_answers(folder: Path) -> Answers:
    """The answers of a library that is opened for them."""
    searcher = ask(lambda: Searcher.open(folder))
    if isinstance(searcher, list):
        return {"open": searcher}
    with searcher:
        return answers_of(searcher)


class Judge:
    """Compares answers with those of a clean copy."""

    def __init__(self, root: Path) -> None:
        self.clean = {}
        self.row_of: dict[str, dict[str, str]] = {}
        for state in STATES:
            with warnings_of_library() as warned, tempfile.TemporaryDirectory() as folder:
                copy = shutil.copytree(root / state, Path(folder) / "library")
                self.clean[state] = fresh_answers(copy)
                rows = re.findall(r"Item\(id='(n\d+)'.*?row=(\d+)", json.dumps(self.clean[state]["nearest text"]))
                self.row_of[state] = {row: name for name, row in rows}
                problems = [] if state == "restoring" else verify(copy).problems
            if warned or problems or not isinstance(self.clean[state].get("best"), list):
                raise RuntimeError(f"the clean copy {state} is not clean: {warned} {problems} {self.clean[state]}")

    def compare(self, case: Case, state: str, found: Answers, warned: list[str], problems: tuple[str, ...]) -> str:
        """The worst of: same, refused, left out, text index, wrong."""
        clean, outcomes = self.clean[state], set[str]()
        if found.keys() != clean.keys():  # it could not be opened
            ((question, answer),) = found.items()
            return "refused" if answer[0] == "refused" else self._wrong(case, question, answer, "")
        text = " ".join(warned)
        missing = set(re.findall(r"item '(n\d+)'", text))
        missing |= {self.row_of[state].get(row, "") for row in re.findall(r"row (\d+)", text)}
        indexes = any("full-text" in problem or "texts" in problem for problem in problems)
        for question, wanted in clean.items():
            answer = found[question]
            if answer == wanted:
                continue
            if isinstance(answer, list) and answer[:1] == ["refused"]:
                outcomes.add("refused")
            elif question in ("items", "paths") and _one_by_one(answer, wanted):
                outcomes.add("refused")
            elif isinstance(wanted, list) and _without(answer, missing) == _without(wanted, missing):
                outcomes.add("left out")
            elif question in WITH_WORDS and problems and (indexes or case.damage != "bit"):
                outcomes.add("text index")
            else:
                self._wrong(case, question, answer, wanted)
                outcomes.add("wrong")
        return max(outcomes, key=OUTCOMES.index, default="same")

    @staticmethod
    def _wrong(case: Case, question: str, answer: Any, wanted: Any) -> str:
        different = [each for each in answer if each not in wanted] if isinstance(answer, list) else answer
        lost = [each for each in wanted if each not in answer] if isinstance(wanted, list) else wanted
        case.failures.append(f"{question}: got {str(different)[:300]} instead of {str(lost)[:300]}")
        return "wrong"


OUTCOMES = ("same", "refused", "left out", "text index", "wrong", "traceback")


def _one_by_one(answer: Any, wanted: Any) -> bool:
    return all(a == b or a[1].startswith("['refused'") for a, b in zip(answer, wanted, strict=True))


def _without(entries: Any, names: set[str]) -> list[Any]:
    return [entry for entry in entries if not isinstance(entry, list) or entry[0] not in names]


def run_case(root: Path, case: Case, judge: Judge) -> None:
    """Damage a file of a copy, ask, verify, repair and restore; the case then says what came of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            if case.state == "backup":
                _damaged_backup(root, folder, case, judge)
            else:
                _damaged_library(root, folder, case, judge)
        except Exception as error:  # noqa: BLE001  # that is what is looked for
            import traceback

            lines = traceback.format_exception(error)
            case.outcome = "traceback"
            case.failures.append("".join(lines[-4:])[-1200:])


def _damaged_library(root: Path, work: Path, case: Case, judge: Judge) -> None:
    library = shutil.copytree(root / case.state, work / "library")
    with warnings_of_library() as warned:
        if case.live:
            with Searcher.open(library) as searcher:
                answers_of(searcher)
                apply_damage(library / case.file, case)
                found = answers_of(searcher)
            problems = verify(library).problems if (library / "manifest.json").exists() else ()
            case.outcome = judge.compare(case, case.state, found, warned, problems)
        else:
            apply_damage(library / case.file, case)
        fresh = fresh_answers(library)
        problems = tuple(ask(lambda: verify(library)).problems)
        outcome = judge.compare(case, case.state, fresh, warned, problems)
        case.outcome = max(case.outcome, outcome, key=OUTCOMES.index)
        if outcome not in ("same", "wrong") and not problems:
            case.failures.append(f"verify finds no problem, but answers are {outcome}: {warned[:2]}")
        if case.state != "restoring":
            _check_repair(library, root / "backup", case, judge)
    with warnings_of_library() as warned:
        restored = ask(lambda: restore(root / "backup", library, replace=True))
        if isinstance(restored, list):
            case.failures.append(f"restore was refused: {restored[1]}")
            return
        if judge.compare(case, "backup", fresh_answers(library), [], ()) != "same" or verify(library).problems:
            case.failures.append(f"the restored library is not that of the backup: {verify(library).problems[:1]}")


def _check_repair(library: Path, copy: Path, case: Case, judge: Judge) -> None:
    result, before = ask(lambda: repair(library, backup=copy)), len(case.failures)
    if isinstance(result, list):
        return
    with warnings_of_library() as warned:
        found, problems = fresh_answers(library), verify(library).problems
        outcome = judge.compare(case, case.state, found, [*warned, *result.restored, *result.lost], problems)
    if problems and not result.lost:
        case.failures.append(f"repair has lost nothing, but verify finds: {problems[0]}")
    if outcome == "wrong" and any("has lost acknowledged" in each for each in result.lost):
        del case.failures[before:]
    elif outcome == "wrong":
        case.outcome = "wrong"
        case.failures.append(f"after repair: {result.restored[:2]} {result.lost[:2]}")


def _damaged_backup(root: Path, work: Path, case: Case, judge: Judge) -> None:
    library, copy = (shutil.copytree(root / state, work / state) for state in ("killed", "backup"))
    apply_damage(copy / case.file, case)
    with closing(connect_writer(library, timeout=0)) as connection:
        connection.execute("DROP TRIGGER item_kept")
        connection.execute("UPDATE items SET text = 'damaged' WHERE row IN (3, 4)")
        connection.execute("UPDATE codes SET text = zeroblob(length(text)) WHERE row IN (10, 11)")
        connection.execute(KEEP_ROWS)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (library / "codes.snapshot").unlink()
    with warnings_of_library() as warned:
        result = ask(lambda: repair(library, backup=copy))
        case.outcome = "refused" if isinstance(result, list) else "same"
        problems = verify(library).problems
        outcome = judge.compare(case, "killed", fresh_answers(library), [*warned, *problems], problems)
        case.outcome = max(case.outcome, outcome, key=OUTCOMES.index)
    whole = shutil.copytree(root / "killed", work / "whole")
    with warnings_of_library() as warned:
        restored = ask(lambda: restore(copy, whole))
        state = "killed" if isinstance(restored, list) else "backup"
        outcome = judge.compare(case, state, fresh_answers(whole), warned, verify(whole).problems)
        case.outcome = max(case.outcome, outcome, "refused" if state == "killed" else "same", key=OUTCOMES.index)


def damage_files(root: Path, cases: int, *, seed: int, on_case: Callable[[Case], None] = lambda _: None) -> list[Case]:
    """Run so many cases, in as many processes as necessary."""
    make_states(root)
    Judge(root)  # raises if a state is not clean
    done: list[Case] = []
    while len(done) < cases:
        command = [sys.executable, "-m", "lab.faults.corruption", str(root), str(seed), str(len(done)), str(cases)]
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                done.append(Case(**json.loads(line)))
                on_case(done[-1])
        if process.returncode:
            case = choose(root, len(done), seed)
            case.outcome, case.failures = "traceback", [f"the process ended with {process.returncode}"]
            done.append(case)
    return done


def summary(cases: list[Case]) -> dict[str, Any]:
    """Counts of outcomes by file and by kind of damage, and all failures."""
    files: defaultdict[str, Counter[str]] = defaultdict(Counter)
    damage: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        name = "a backup" if case.state == "backup" else Path(case.file).name
        files[name if not case.file.startswith(".restoring") else "a restore"][case.outcome] += 1
        damage[case.damage][case.outcome] += 1
    failures = [f"case {case.number} ({case.state}/{case.file}, {case.damage}): {f}" for case in cases for f in case.failures]
    return {"cases": len(cases), "live": sum(case.live for case in cases), "files": files, "damage": damage} | {
        "outcomes": Counter(case.outcome for case in cases),
        "failures": failures,
    }


def main(root: Path, seed: int, first: int, last: int) -> None:
    """Run some cases and print them as lines of JSON."""
    judge = Judge(root)
    for number in range(first, last):
        case = choose(root, number, seed)
        run_case(root, case, judge)
        print(json.dumps(asdict(case)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
