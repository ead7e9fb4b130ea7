"""MS COCO 2014 as published: annotations of objects and captions for the training and validation images."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import open_regular
from rmsh.data.benchmarks.base import BENCHMARKS, Source, find, image_columns, image_number
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

PARTS = ("train", "val")
CHUNK = 1 << 20  # bytes read at a time


def read(root: Path) -> Source:
    """Read every image of both parts, with its categories and its first caption, from the folder with the files."""
    names = [f"{kind}_{part}2014.json" for kind in ("instances", "captions") for part in PARTS]
    files = {f"annotations/{name}": (f"annotations/{name}", name) for name in names}
    inputs = tuple(BENCHMARKS["mscoco"].find_files(root, files).values())
    instances, captions = inputs[:2], inputs[2:]
    listed = [sorted(_fields(path, "images", "id", "file_name")) for path in instances]
    numbers = [number for part in listed for number, _ in part]
    part = np.repeat(PARTS, [len(part) for part in listed])
    classes, *others = (dict(sorted(_fields(path, "categories", "id", "name"))) for path in instances)
    if others != [classes]:
        raise DataError(f"{root}: the categories of train2014 and val2014 differ; download both from one release.")
    labels, strays = _read_labels(instances, numbers, [*classes])
    first: dict[int, str] = {}  # the first caption of an image that is not blank, with single blanks
    for path in captions:
        for image, caption in _fields(path, "annotations", "image_id", "caption"):
            if image not in first and caption.strip():
                first[image] = " ".join(caption.split())
    texts = np.array([first.get(number, "") for number in numbers])
    folders = {name: (find(root, f"{name}2014") or root / f"{name}2014").resolve() for name in PARTS}
    pairs = Pairs(
        ids=np.array(numbers).astype(np.str_),
        texts=texts,
        has_text=texts != "",
        labels=labels,
        class_names=tuple(classes.values()),
        source=str(root),
        **image_columns([folders[name] for name in part], [name for part in listed for _, name in part]),
    )
    notes = (f"{strays:,} annotations of images that are not listed were skipped",) if strays else ()
    return Source(pairs, part, (), notes, inputs, image_number)


def _read_labels(paths: Sequence[Path], images: Sequence[int], categories: Sequence[int]) -> tuple[LabelArray, int]:
    """Labels (images, categories), and the number of annotations of other images or categories."""
    row_of, column_of = ({number: i for i, number in enumerate(numbers)} for numbers in (images, categories))
    labels, strays = np.zeros((len(images), len(categories)), dtype=np.uint8), 0
    for path in paths:
        for image, category in _fields(path, "annotations", "image_id", "category_id"):
            if image in row_of and category in column_of:
                labels[row_of[image], column_of[category]] = 1
            else:
                strays += 1
    return labels, strays


def _fields(path: Path, key: str, *names: str) -> Iterator[Any]:
    """Some fields of each element of a top-level array."""
    for number, element in enumerate(stream_elements(path, key)):
        try:
            yield tuple(element[name] for name in names)
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}: {key}[{number}] lacks {error}; download the file again.") from error


def stream_elements(path: Path, key: str) -> Iterator[Any]:
    """The elements of a top-level array of a JSON object, in the memory of one element."""
    import ijson

    with open_regular(path) as file:
        head = file.read(CHUNK)
        start = len(BOM_UTF8) if head.startswith(BOM_UTF8) else 0
        if not head[start:].lstrip().startswith(b"{"):
            raise DataError(f"{path} is not a JSON object; download the file again.")
        file.seek(start)
        try:
            yield from ijson.items(file, f"{key}.item", use_float=True, buf_size=CHUNK)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise DataError(f"{path} is not valid JSON ({error}); download the file again.") from error
