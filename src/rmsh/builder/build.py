"""The builder's road in one call: a folder of pictures in, a library to search out.

Stages: read, features, bounds, train, scores, library, report. What they leave is kept in a folder beside the library
(its name and ``.build``), so that a build which was stopped goes on, and one that is done is left alone. The library
gets its name in one rename when everything else is there.

A tenth of the items is kept aside while learning (none, where they are few), so that the scores are those of the model
that serves, on items it never saw. The library holds all items.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rmsh.builder.config import BuildConfig
from rmsh.builder.estimate import estimate
from rmsh.builder.road import Road
from rmsh.builder.source import Source, read_source
from rmsh.builder.stages import Stages, digest
from rmsh.data.beside import CREDIT
from rmsh.data.skipped import write_skipped
from rmsh.errors import FormatError, InputError, RmshError
from rmsh.features.claims import claimed
from rmsh.files import flush_folder, read_json, write_json, write_text
from rmsh.library.faults import explained
from rmsh.library.folder import MANIFEST
from rmsh.progress import OnProgress, ignore

__all__ = ["Built", "build", "read_report", "work_folder"]

REPORT, PAGE, SKIPPED = "report.json", "report.html", "skipped.csv"

Tell: TypeAlias = Callable[[str], None]  # a sentence for the user


def _to_nobody(sentence: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Built:
    """What a build leaves.

    Args:
        library: its folder.
        report: what ``report.json`` in it holds.
        is_new: False where it had been built before, and nothing was done.
    """

    library: Path
    report: dict[str, Any]
    is_new: bool


def work_folder(out: Path) -> Path:
    """Where the stages of a build keep what they made.

    Example:
        >>> work_folder(Path("photos")).name
        'photos.build'
    """
    return out.with_name(f"{out.name}.build")


def build(
    data: str | Path,
    out: Path | str,
    *,
    config: BuildConfig | None = None,
    overwrite: bool = False,
    tell: Tell = _to_nobody,
    on_progress: OnProgress = ignore,
) -> Built:
    """Build a library from somebody's pictures and texts; given again after it was stopped, it goes on.

    Args:
        data: a folder of pictures, its metadata file, or tar shards; see :func:`rmsh.open_pairs`.
        out: the folder of the library.
        config: options.
        overwrite: replace a library of other data or options.
        tell: is told sentences for the user: what was found, what it will take, which delta was chosen and why.
        on_progress: is told how far it is.

    Raises:
        InputError: there is something else in ``out``.
        DataError: nothing can be learned from the data; the message says why.
    """
    folder, chosen = Path(os.path.abspath(out)), config or BuildConfig.parse({})
    work = work_folder(folder)
    source = read_source(data, chosen, work=work)
    for note in source.notes:
        tell(note)
    key = digest(chosen.model_dump(mode="json", exclude={"strict"}), source.key())
    done = read_report(folder)
    if done is not None and done["key"] == key:
        tell(f"{out} was built from the same items with the same options; nothing is left to do")
        return Built(folder, done, is_new=False)
    _check_place(folder, overwrite=overwrite)
    with explained(work), _alone(work):
        expected = estimate(source.pairs, own_pictures=_picture_bytes(source))
        expected.check_space(work)
        tell(f"{expected}; the library goes to {out}, what is kept to go on from to {work.name} beside it")
        stages = Stages(work, on_skip=lambda name: tell(f"{name}: done before"))
        road = Road(source, chosen, stages, tell=tell, on_progress=on_progress)
        report = road.go() | {"key": key}
        _finish(work / "library", report, road)
        _publish(work / "library", folder, replaced=work / "replaced")
    return Built(folder, report, is_new=True)


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Keep others from building in the same folder while the block runs."""
    with claimed(work / "build.claim") as mine:
        if not mine:
            raise RmshError(f"Another process is building in {work}; wait until it ends, or stop it.")
        yield


def read_report(folder: Path) -> dict[str, Any] | None:
    """The report of a library; None where no build made it, or it is not finished."""
    try:
        report = read_json(folder / REPORT)
        return report if (folder / MANIFEST).is_file() and "key" in report else None
    except (OSError, FormatError, TypeError):
        return None


def _check_place(folder: Path, *, overwrite: bool) -> None:
    """Refuse a place where something is that would be lost."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} is there already and is no library; give a new folder.")
    if not overwrite:
        raise InputError(
            f"{folder} is a library of other items or options; give another folder, `rmsh add` new items to it, or "
            "replace it with --overwrite."
        )


def _picture_bytes(source: Source) -> int:
    """How large the pictures are that the library will keep itself."""
    if not source.origin.unpacked:
        return 0
    pictures = (record.picture for record in source.origin.records)
    return sum((source.origin.folder / name).stat().st_size for name in pictures if name is not None)


def _finish(library: Path, report: dict[str, Any], road: Road) -> None:
    """Write what a person reads into the folder of the library."""
    if report["credit"]:
        write_text(library / CREDIT, report["credit"] + "\n")
    write_skipped(library / SKIPPED, road.source.origin.skipped)
    write_text(library / PAGE, road.page(report))
    write_json(library / REPORT, report)


def _publish(finished: Path, folder: Path, *, replaced: Path) -> None:
    """Give the library its name; one that is replaced is there until the new one is."""
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        os.rename(folder, replaced)
    os.rename(finished, folder)
    flush_folder(folder.parent)
    shutil.rmtree(replaced, ignore_errors=True)
