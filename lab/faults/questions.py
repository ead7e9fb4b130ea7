"""Questions to a library, and the comparison of its answers with those of a clean copy."""

from __future__ import annotations

import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.faults.content import WORDS, make_codes, make_item
from rmsh.core.errors import RmshError
from rmsh.core.types import MODALITIES
from rmsh.index.filters import Id, Label, Text
from rmsh.library.export import export_parquet
from rmsh.library.maintenance import describe
from rmsh.search.searcher import Searcher

if TYPE_CHECKING:
    from rmsh.library import Library

ITEMS = 90
OUTCOMES = ("same", "refused", "left out", "text index", "wrong", "traceback")
_WITH_WORDS = {"worded", "best"}  # questions that use the text index

Answers = dict[str, Any]


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def warnings_of_library() -> Iterator[list[str]]:
    """Collects what the library logs."""
    collector, log = _Collector(), logging.getLogger("rmsh.library")
    log.addHandler(collector)
    try:
        yield collector.messages
    finally:
        log.removeHandler(collector)


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
        "with ID": lambda: nearest("text", where=Id("n9") | Id("n69")),
        "worded": lambda: nearest("text", where=Text(WORDS[0])),
        "best": lambda: hits(searcher.search(searcher.text(f"{WORDS[1]} {WORDS[0]}"), ITEMS, to="text")),
        "like": lambda: hits(searcher.search(searcher.item("n9"), ITEMS, to="image")),
        "exported": lambda: _export(library),
    }
    answers |= {f"{modality} codes": partial(_codes, library, names, modality) for modality in MODALITIES}
    found = {name: ask(question) for name, question in answers.items()}
    found["items"] = [[name, repr(ask(partial(library.get, name)))] for name in names]
    found["paths"] = [[name, repr(ask(partial(_path, library, name)))] for name in names[:9]]
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


class Clean:
    """The answers of a clean copy, with which others are compared."""

    def __init__(self, folder: Path) -> None:
        with warnings_of_library() as warned:
            self.answers = fresh_answers(folder)
        if warned or not isinstance(self.answers.get("best"), list):
            raise RuntimeError(f"the clean copy {folder} is not clean: {warned} {self.answers}")
        rows = re.findall(r"Item\(id='(n\d+)'.*?row=(\d+)", json.dumps(self.answers["nearest text"]))
        self._name_of = {row: name for name, row in rows}

    def compare(self, found: Answers, warned: Sequence[str], problems: Sequence[str]) -> tuple[str, list[str]]:
        """The worst outcome, and a message for each wrong answer.

        An answer may lack the items that a warning names. One that uses the text index may differ if `verify` has found
        problems.
        """
        if found.keys() != self.answers.keys():  # it could not be opened
            return "refused", []
        text = " ".join(warned)
        names = {self._name_of.get(row, "") for row in re.findall(r"row (\d+)", text)}
        names |= set(re.findall(r"item '(n\d+)'", text))
        outcomes, wrong = {"same"}, list[str]()
        for question, wanted in self.answers.items():
            answer = found[question]
            if answer == wanted:
                continue
            if _is_refused(answer, wanted):
                outcomes.add("refused")
            elif isinstance(wanted, list) and _without(answer, names) == _without(wanted, names):
                outcomes.add("left out")
            elif question in _WITH_WORDS and problems:
                outcomes.add("text index")
            else:
                outcomes.add("wrong")
                wrong.append(_difference(question, answer, wanted))
        return max(outcomes, key=OUTCOMES.index), wrong


def _is_refused(answer: Any, wanted: Any) -> bool:
    """Whether an answer is a refusal, or a list of answers of which the wrong ones are."""
    if not isinstance(answer, list) or answer[:1] == ["refused"]:
        return isinstance(answer, list)
    if len(answer) != len(wanted):
        return False
    return all(a == b or (a[0] == b[0] and a[1].startswith("['refused'")) for a, b in zip(answer, wanted, strict=True))


def _without(entries: Any, names: set[str]) -> list[Any]:
    return [entry for entry in entries if not isinstance(entry, list) or entry[0] not in names]


def _difference(question: str, answer: Any, wanted: Any) -> str:
    if isinstance(answer, list) and isinstance(wanted, list):
        answer, wanted = [e for e in answer if e not in wanted], [e for e in wanted if e not in answer]
    return f"{question}: got {str(answer)[:300]} instead of {str(wanted)[:300]}"
