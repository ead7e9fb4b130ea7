"""MS COCO 2014 as its owner publishes it: annotations of objects and captions, for training and for validation.

JSON files too large to load: the elements of their arrays one at a time, in the memory of one element.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.published import Source, find, missing_files, pictures
from rmsh.data.benchmarks.registry import MSCOCO
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

CHUNK = 1 << 20  # characters read at a time
_BLANKS = re.compile(r"[ \t\r\n]*")


def stream_members(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of a JSON object in their order; an array comes element by element, each under the array's key.

    Raises:
        DataError: the file is not one JSON object, with the character where it stops being one.
    """
    with path.open(encoding="utf-8-sig") as file:
        reader = _Reader(file)
        try:
            yield from _members(reader)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            where = reader.passed + reader.at
            raise DataError(f"{path} is not readable as JSON near character {where} ({error}); get it anew.") from error


def _members(reader: _Reader) -> Iterator[tuple[str, Any]]:
    reader.take("{")
    closed = reader.take_if("}")
    while not closed:
        key = reader.value()
        reader.take(":")
        if reader.take_if("["):
            for element in _elements(reader):
                yield key, element
        else:
            yield key, reader.value()
        closed = reader.take_if("}")
        if not closed:
            reader.take(",")


def _elements(reader: _Reader) -> Iterator[Any]:
    closed = reader.take_if("]")
    while not closed:
        yield reader.value()
        closed = reader.take_if("]")
        if not closed:
            reader.take(",")


class _Reader:
    """A window on a file that moves on as values are taken from it."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.window = ""
        self.at = 0
        self.passed = 0  # characters before the window
        self.scan = json.JSONDecoder().raw_decode

    def take(self, wanted: str) -> None:
        if not self.take_if(wanted):
            raise json.JSONDecodeError(f"{wanted!r} is expected", self.window, self.at)

    def take_if(self, wanted: str) -> bool:
        found = self._next() == wanted
        self.at += found
        return found

    def value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self.scan(self.window, self.at)
            except json.JSONDecodeError:
                if not self._read_on():
                    raise
                continue
            if len(self.window) - end < 3 and self._read_on():  # a number may go on: 1 in 1e-5 looks like one
                continue
            self.at = end
            return value

    def _next(self) -> str:
        """The next character that is no blank; nothing at the end."""
        while True:
            self.at = _BLANKS.match(self.window, self.at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if self.at < len(self.window) or not self._read_on():
                return self.window[self.at : self.at + 1]

    def _read_on(self) -> bool:
        # as much as is held already, so that an element of any size is read again a few times only
        more = self.file.read(max(CHUNK, len(self.window) - self.at))
        self.passed += self.at if more else 0
        self.window, self.at = (self.window[self.at :] + more, 0) if more else (self.window, self.at)
        return bool(more)


PARTS = ("train", "val")
# array of a file -> the two fields of its members that are read
INSTANCES = {"images": ("id", "file_name"), "categories": ("id", "name"), "annotations": ("image_id", "category_id")}
CAPTIONS = {"annotations": ("image_id", "caption")}


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the owner's two parts, pictures in the order of their numbers."""

    files: dict[int, str]  # number of a picture -> its file
    classes: dict[int, str]  # number of a category -> its name
    labels: LabelArray
    captions: list[str]  # empty where there is none
    strays: int  # annotations of pictures that are not listed


def read(root: Path) -> Source:
    """Read every picture of both parts with its categories and its first caption.

    Args:
        root: the folder into which the owner's files were unpacked.

    Raises:
        DataError: files are missing or damaged, or the two parts have other categories.
    """
    names = {(kind, part): f"{kind}_{part}2014.json" for part in PARTS for kind in ("instances", "captions")}
    found = {key: find(root, f"annotations/{name}", name) for key, name in names.items()}
    missing = [f"annotations/{names[key]}" for key, path in found.items() if path is None]
    if missing:
        raise missing_files(root, missing, MSCOCO)
    inputs = {key: path for key, path in found.items() if path is not None}
    parts = [_read_part(inputs["instances", part], inputs["captions", part]) for part in PARTS]
    if parts[0].classes != parts[1].classes:
        raise DataError(f"{root}: the categories of train2014 and val2014 differ; get both files of one release.")
    strays = sum(part.strays for part in parts)
    return Source(
        _pairs(root, parts),
        part=np.repeat(PARTS, [len(part.files) for part in parts]),
        notes=(f"{strays:,} annotations of pictures that are not listed were skipped",) if strays else (),
        inputs=tuple(inputs.values()),
        canonical_id=_canonical_id,
    )


def _pairs(root: Path, parts: list[_Part]) -> Pairs:
    captions = np.array([caption for part in parts for caption in part.captions], dtype=np.str_)
    numbers = [number for part in parts for number in part.files]
    images, present = _pictures(root, parts)
    return Pairs(
        ids=np.array(numbers).astype(np.str_),
        images=images,
        has_image=present,
        texts=captions,
        has_text=captions != "",
        labels=np.concatenate([part.labels for part in parts]),
        class_names=tuple(parts[0].classes.values()),
        source=str(root),
    )


def _canonical_id(name: str) -> str:
    """The id of a picture from its number or file name, such as "9" from "COCO_train2014_000000000009.jpg"."""
    digits = re.search(r"(\d+)(\.\w+)?$", name)
    return str(int(digits[1])) if digits else name


def _pictures(root: Path, parts: list[_Part]) -> tuple[Any, Any]:
    """Paths of the pictures of both parts and which of them exist; None where no picture is there."""
    found = [
        pictures(find(root, f"{name}2014"), list(part.files.values())) for name, part in zip(PARTS, parts, strict=True)
    ]
    if all(paths is None for paths, _ in found):
        return None, None
    filled = [
        (np.full(len(part.files), ""), np.zeros(len(part.files), dtype=np.bool_)) if paths is None else (paths, present)
        for (paths, present), part in zip(found, parts, strict=True)
    ]
    return np.concatenate([paths for paths, _ in filled]), np.concatenate([present for _, present in filled])


def _read_part(instances: Path, captions: Path) -> _Part:
    files: dict[int, str] = {}
    classes: dict[int, str] = {}
    picture, category = array("q"), array("q")
    for key, first, second in _fields(instances, INSTANCES):
        if key == "annotations":
            picture.append(first)
            category.append(second)
        else:
            (files if key == "images" else classes)[first] = second
    files, classes = dict(sorted(files.items())), dict(sorted(classes.items()))
    labels, strays = _labels(files, classes, np.array(picture), np.array(category))
    texts = _first_captions(captions)
    return _Part(files, classes, labels, [texts.get(number, "") for number in files], strays)


def _fields(path: Path, wanted: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, Any, Any]]:
    """Two fields of each member of the wanted arrays, with the key of the array; other members are passed over."""
    for count, (key, member) in enumerate(stream_members(path)):
        if key in wanted:
            first, second = wanted[key]
            try:
                yield key, member[first], member[second]
            except (KeyError, TypeError) as error:
                raise DataError(f"{path}: member {count}, one of its {key}, lacks {error}; get it anew.") from error


def _labels(
    files: Mapping[int, str], classes: Mapping[int, str], picture: Any, category: Any
) -> tuple[LabelArray, int]:
    """Labels (pictures, categories), and how many annotations belong to none of these pictures."""
    labels = np.zeros((len(files), len(classes)), dtype=np.uint8)
    listed, known = np.array([*files], dtype=np.int64), np.array([*classes], dtype=np.int64)
    here = np.isin(picture, listed) & np.isin(category, known)
    labels[np.searchsorted(listed, picture[here]), np.searchsorted(known, category[here])] = 1
    return labels, int((~here).sum())


def _first_captions(path: Path) -> dict[int, str]:
    """Number of a picture -> the first of its captions that is not blank, with single blanks."""
    texts: dict[int, str] = {}
    for _, picture, caption in _fields(path, CAPTIONS):
        if picture not in texts and caption.strip():
            texts[picture] = " ".join(caption.split())
    return texts
