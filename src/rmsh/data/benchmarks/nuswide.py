"""NUS-WIDE as published: a list of images, one file of 0/1 per concept, one row of 0/1 tags per image."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import open_regular
from rmsh.data.benchmarks.base import BENCHMARKS, Source, bag_of_words, find, image_columns, text_lines
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

LIST = ("ImageList/Imagelist.txt", "ImageList/ImageList.txt", "Imagelist.txt", "ImageList.txt")
CONCEPTS = ("ConceptsList/Concepts81.txt", "Concepts81.txt")
LABELS = ("Groundtruth/AllLabels", "AllLabels")
WORDS = ("NUS_WID_Tags/TagList1k.txt", "TagList1k.txt")
TAGS = ("NUS_WID_Tags/AllTags1k.txt", "AllTags1k.txt")


def read(root: Path) -> Source:
    """Read every image of the published list, with its concepts and tags, from the folder with the unpacked files."""
    files = {names[0]: names for names in (LIST, CONCEPTS, LABELS, WORDS, TAGS)}
    image_list, concepts, labels, words, tags = BENCHMARKS["nuswide"].find_files(root, files).values()
    names = [PureWindowsPath(line).as_posix() for line in text_lines(image_list)]
    classes, vocabulary = tuple(text_lines(concepts)), tuple(text_lines(words))
    folder = (find(root, "Flickr", "images") or root / "Flickr").resolve()
    pairs = Pairs(
        ids=np.array([_canonical_id(name) for name in names]),
        texts=_read_tags(tags, len(names), len(vocabulary)),
        labels=_read_labels(labels, classes, len(names)),
        class_names=classes,
        source=str(root),
        **image_columns([folder] * len(names), names),
    )
    return Source(pairs, None, vocabulary, (), (image_list, concepts, words, tags), _canonical_id)


def _canonical_id(name: str) -> str:
    r"""The ID of an image from its path in the list, such as "actor/0001_212" from "actor\0001_212.jpg"."""
    path = PureWindowsPath(name)
    return path.with_suffix("").as_posix() if path.suffix.lower() == ".jpg" else path.as_posix()


def _read_labels(folder: Path, classes: tuple[str, ...], n: int) -> LabelArray:
    """One column per concept, in the order of the published list of concepts."""
    names = [f"Labels_{name}.txt" for name in classes]
    labels = np.empty((n, len(classes)), dtype=np.uint8)
    for column, path in enumerate(BENCHMARKS["nuswide"].find_files(folder, {name: [name] for name in names}).values()):
        labels[:, column] = _digits(path.read_bytes(), n, f"{path}: one 0 or 1 for each of the {n} images of {LIST[0]}")
    return labels


def _read_tags(path: Path, n: int, words: int) -> Any:
    """Rows of 0/1 separated by blanks, as CSR; read by line, because the file has half a gigabyte."""
    rows: list[Any] = []
    with open_regular(path) as file:
        for line in filter(bytes.strip, file):
            if len(rows) == n:
                raise DataError(f"{path} has more rows than the {n} images of {LIST[0]}; download both files again.")
            where = f"{path}, row {len(rows) + 1}: one 0 or 1 for each of the {words} words of {WORDS[0]}"
            rows.append(np.flatnonzero(_digits(line, words, where)).astype(np.int32))
    if len(rows) < n:
        raise DataError(f"{path} has {len(rows)} rows for the {n} images of {LIST[0]}; download both files again.")
    return bag_of_words(rows, words)


def _digits(content: bytes, count: int, expected: str) -> LabelArray:
    """Zeros and ones separated by blanks, uint8 (count,)."""
    digits = np.frombuffer(content.translate(None, b" \t\r\n"), dtype=np.uint8) - ord("0")
    if len(digits) != count or digits.max(initial=0) > 1:
        raise DataError(f"{expected} is expected, but got {len(digits)} characters. Download the file again.")
    return digits
