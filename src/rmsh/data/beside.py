"""Pictures without a metadata file: the text is a .txt of the same name beside it, the label the folder it lies in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from rmsh.data.records import Record
from rmsh.data.skipped import Skipped

__all__ = ["CREDIT", "LARGEST_TEXT", "PICTURE_SUFFIXES", "is_picture", "read_credit", "records_of_files"]

PICTURE_SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .png .apng .webp .gif .bmp .tif .tiff .ppm .pgm .jp2 .avif".split()  # noqa: SIM905
)
LARGEST_TEXT = 1 << 20  # bytes of a file with one text
CREDIT = "CREDIT.txt"  # whom to thank for the pictures; no item
_LONGEST_CREDIT = 2_000  # characters


def is_picture(name: str) -> bool:
    """Whether a file has the suffix of a picture.

    Example:
        >>> is_picture("photos/1.JPG"), is_picture("metadata.csv")
        (True, False)
    """
    return PurePosixPath(name).suffix.lower() in PICTURE_SUFFIXES


def read_credit(folder: Path) -> str:
    """Whom to thank for the pictures of a folder, from its CREDIT.txt; "" where there is none."""
    file = folder / CREDIT
    return file.read_text(encoding="utf-8", errors="replace")[:_LONGEST_CREDIT].strip() if file.is_file() else ""


def records_of_files(folder: Path, files: Sequence[str]) -> tuple[list[Record], list[Skipped], list[str]]:
    """A record for each picture, and for each .txt that stands alone.

    Args:
        folder: what the paths start from.
        files: paths of all files.

    Returns:
        Records, not yet checked; texts that cannot be read; and notes.
    """
    pictures = [name for name in files if is_picture(name)]
    text_of = {_stem(name): name for name in files if _is_text(name)}
    alone = [text for stem, text in text_of.items() if stem not in set(map(_stem, pictures))]
    records = [Record(name, None, name, picture=name) for name in pictures]
    records = _with_folder_labels(records) + [Record(name, None, name) for name in alone]
    skipped: list[Skipped] = []
    for i, record in enumerate(records):
        beside = text_of.get(_stem(record.id))
        if beside is not None:
            text, problem = _read_text(folder / beside)
            records[i] = replace(record, text=text)
            skipped += [Skipped(beside, None, record.id, "text", problem)] if problem else []
    return records, skipped, list(_notes(files, records))


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _is_text(name: str) -> bool:
    return name.lower().endswith(".txt") and name != CREDIT


def _read_text(path: Path) -> tuple[str | None, str | None]:
    """The text of a file, or why there is none."""
    try:
        if path.stat().st_size > LARGEST_TEXT:
            return None, f"it is larger than {LARGEST_TEXT >> 20} MB"
        return path.read_text(encoding="utf-8-sig"), None
    except (OSError, UnicodeDecodeError) as error:
        return None, f"it is not a text in UTF-8 ({error})"


def _with_folder_labels(records: list[Record]) -> list[Record]:
    """Label pictures by the folder they lie in, where all lie in folders, and in more than one."""
    parents = [PurePosixPath(record.id).parent.name for record in records]
    if not all(parents) or len(set(parents)) < 2:
        return records
    return [replace(record, labels=(parent,)) for record, parent in zip(records, parents, strict=True)]


def _notes(files: Sequence[str], records: Sequence[Record]) -> Iterator[str]:
    pictures = sum(record.picture is not None for record in records)
    yield f"{pictures:,} pictures, {sum(record.text is not None for record in records):,} of the items have a text"
    classes = {label for record in records for label in record.labels}
    if classes:
        yield f"the folders' names are taken as labels, {len(classes):,} classes"
    others = Counter(
        PurePosixPath(name).suffix.lower() or "no suffix"
        for name in files
        if not is_picture(name) and not _is_text(name)
    )
    if others:
        counted = ", ".join(f"{count:,} {suffix}" for suffix, count in others.most_common(5))
        yield f"files that are neither pictures nor texts were passed over: {counted}"
