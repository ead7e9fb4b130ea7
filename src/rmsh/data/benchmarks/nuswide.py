"""NUS-WIDE as its owner publishes it: a list of pictures, one file of 0/1 a concept, one row of 0/1 tags a picture."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.published import Source, csr_of_ones, find, missing_files, pictures, text_lines
from rmsh.data.benchmarks.registry import NUSWIDE
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

LIST = ("ImageList/Imagelist.txt", "ImageList/ImageList.txt", "Imagelist.txt", "ImageList.txt")
CONCEPTS = ("ConceptsList/Concepts81.txt", "Concepts81.txt")
LABELS = ("Groundtruth/AllLabels", "AllLabels")
WORDS = ("NUS_WID_Tags/TagList1k.txt", "TagList1k.txt")
TAGS = ("NUS_WID_Tags/AllTags1k.txt", "AllTags1k.txt")
BLANKS = b" \t\r\n"


def read(root: Path) -> Source:
    """Read every picture of the owner's list, with all its concepts and tags.

    Args:
        root: the folder into which the owner's files were unpacked.

    Raises:
        DataError: files are missing, or do not have one row a picture.
    """
    found = {names[0]: find(root, *names) for names in (LIST, CONCEPTS, LABELS, WORDS, TAGS)}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise missing_files(root, missing, NUSWIDE)
    image_list, concepts, labels, words, tags = (path for path in found.values() if path is not None)
    names = [PureWindowsPath(line).as_posix() for line in text_lines(image_list) if line]
    classes = tuple(line for line in text_lines(concepts) if line)
    vocabulary = tuple(line for line in text_lines(words) if line)
    images, present = pictures(find(root, "Flickr", "images"), names)
    pairs = Pairs(
        ids=np.array([_canonical_id(name) for name in names]),
        images=images,
        has_image=present,  # type: ignore[arg-type]  # None: all or none
        texts=_read_tags(tags, len(names), len(vocabulary)),
        labels=_read_labels(labels, classes, len(names)),
        class_names=classes,
        source=str(root),
    )
    inputs = (image_list, concepts, words, tags)
    return Source(pairs, vocabulary=vocabulary, inputs=inputs, canonical_id=_canonical_id)


def _canonical_id(name: str) -> str:
    r"""The id of a picture from its path in the list, such as "actor/0001_212" from "actor\0001_212.jpg"."""
    path = PureWindowsPath(name)
    return path.with_suffix("").as_posix() if path.suffix.lower() == ".jpg" else path.as_posix()


def _read_labels(folder: Path, classes: tuple[str, ...], n: int) -> LabelArray:
    """One column a concept, in the order of the owner's list of concepts."""
    missing = [f"{LABELS[0]}/Labels_{name}.txt" for name in classes if not (folder / f"Labels_{name}.txt").is_file()]
    if missing:
        raise missing_files(folder.parent.parent, missing, NUSWIDE)
    labels = np.empty((n, len(classes)), dtype=np.uint8)
    for column, name in enumerate(classes):
        path = folder / f"Labels_{name}.txt"
        labels[:, column] = _digits(
            path.read_bytes(), n, f"{path}: one 0 or 1 for each of the {n} pictures of {LIST[0]}"
        )
    return labels


def _read_tags(path: Path, n: int, words: int) -> Any:
    """Rows of 0/1 with blanks between, as CSR; a line at a time, for the file has half a gigabyte."""
    columns, ends = [], np.zeros(n + 1, dtype=np.int64)
    row = 0
    with path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            if row == n:
                raise DataError(f"{path} has more rows than the {n} pictures of {LIST[0]}; get both files anew.")
            where = f"{path}, row {row + 1}: one 0 or 1 for each of the {words} words of {WORDS[0]}"
            columns.append(np.flatnonzero(_digits(line, words, where)).astype(np.int32))
            row += 1
            ends[row] = ends[row - 1] + len(columns[-1])
    if row < n:
        raise DataError(f"{path} has {row} rows for the {n} pictures of {LIST[0]}; get both files anew.")
    return csr_of_ones(np.concatenate(columns), ends, words)


def _digits(content: bytes, count: int, expected: str) -> LabelArray:
    """Zeros and ones with blanks between, uint8 (count,)."""
    digits = np.frombuffer(content.translate(None, BLANKS), dtype=np.uint8) - ord("0")
    if len(digits) != count or digits.max(initial=0) > 1:
        raise DataError(f"{expected} is expected; {len(digits)} characters were found. Get the file anew.")
    return digits
