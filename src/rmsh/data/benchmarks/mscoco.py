"""MS COCO 2014 as published: annotations of objects and captions for the training and validation images."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.base import SEED_UNKNOWN, TENTH, Benchmark, Protocol, Source, find, image_paths
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

PARTS = ("train", "val")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CHUNK = 1 << 20  # bytes read at a time

MSCOCO = Benchmark(
    name="mscoco",
    title="MS COCO 2014 (COCO Consortium)",
    published=(
        "annotations_trainval2014.zip, and the images train2014.zip and val2014.zip, at "
        "https://cocodataset.org/#download"
    ),
    licence="annotations CC BY 4.0; images under Flickr's terms",
    citation="T.-Y. Lin et al.: Microsoft COCO: Common Objects in Context. ECCV 2014",
    marker="annotations",
    layout="annotations/{instances,captions}_{train,val}2014.json, {train,val}2014/COCO_*.jpg",
    text_width=4800,
    protocols=(
        Protocol(
            "paper",
            "RMSH: all 82,783 training images are database and training, 4,956 validation images are queries",
            queries=4956,
            labelled=False,
            worded=False,
            parts=("train", "val"),
        ),
        Protocol(
            "labelled",
            "the paper's, without the training images that have no label",
            queries=4956,
            worded=False,
            parts=("train", "val"),
        ),
        Protocol(
            "hashnet",
            "HashNet's counts: labelled images of both parts; 5,000 queries, the rest database, 10,000 training",
            queries=5000,
            train=10_000,
        ),
        TENTH,
    ),
    open_points=(
        SEED_UNKNOWN,
        "The paper keeps all 82,783 training images, some of which have no label: they stay in the database, "
        "relevant to no query, and training skips them. The split 'labelled' omits them.",
        "4,956 queries remain of 5,000 if about 0.9 % of the validation images have no label; queries are drawn from "
        "the labelled ones.",
        "The first caption is the first in the file that is not blank; a crowd annotation counts for its category.",
    ),
)


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the two published parts, images in the order of their numbers."""

    files: dict[int, str]  # image number -> its file
    classes: dict[int, str]  # category number -> its name
    labels: LabelArray
    captions: list[str]  # "" if there is none
    strays: int  # annotations of images that are not listed


def read(root: Path) -> Source:
    """Read every image of both parts, with its categories and its first caption, from the folder with the files."""
    names = {(kind, part): f"{kind}_{part}2014.json" for part in PARTS for kind in ("instances", "captions")}
    found = {key: find(root, f"annotations/{name}", name) for key, name in names.items()}
    missing = [f"annotations/{names[key]}" for key, path in found.items() if path is None]
    if missing:
        raise MSCOCO.missing_files(root, missing)
    inputs = {key: path for key, path in found.items() if path is not None}
    parts = [_read_part(inputs["instances", part], inputs["captions", part]) for part in PARTS]
    if parts[0].classes != parts[1].classes:
        raise DataError(
            f"{root}: the categories of train2014 and val2014 differ; download both files from one release."
        )
    strays = sum(part.strays for part in parts)
    return Source(
        _pairs(root, parts),
        part=np.repeat(PARTS, [len(part.files) for part in parts]),
        notes=(f"{strays:,} annotations of images that are not listed were skipped",) if strays else (),
        inputs=tuple(inputs.values()),
        canonical_id=_canonical_id,
    )


def _pairs(root: Path, parts: list[_Part]) -> Pairs:
    captions = np.array([caption for part in parts for caption in part.captions], dtype=np.str_)
    numbers = [number for part in parts for number in part.files]
    images, present = _images(root, parts)
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
    """The ID of an image from its number or file name, such as "9" from "COCO_train2014_000000000009.jpg"."""
    digits = re.search(r"(\d+)(\.\w+)?$", name)
    return str(int(digits[1])) if digits else name


def _images(root: Path, parts: list[_Part]) -> tuple[Any, Any]:
    """Paths of the images of both parts and a mask of those that exist; None for both if there are none."""
    found = [
        image_paths(find(root, f"{name}2014"), list(part.files.values()))
        for name, part in zip(PARTS, parts, strict=True)
    ]
    if all(paths is None for paths, _ in found):
        return None, None
    filled = [
        (np.full(len(part.files), ""), np.zeros(len(part.files), dtype=np.bool_)) if paths is None else (paths, present)
        for (paths, present), part in zip(found, parts, strict=True)
    ]
    return np.concatenate([paths for paths, _ in filled]), np.concatenate([present for _, present in filled])


def _read_part(instances: Path, captions: Path) -> _Part:
    files: dict[int, str] = dict(sorted(_fields(instances, "images", "id", "file_name")))
    classes: dict[int, str] = dict(sorted(_fields(instances, "categories", "id", "name")))
    image, category = array("q"), array("q")
    for image_id, category_id in _fields(instances, "annotations", "image_id", "category_id"):
        image.append(image_id)
        category.append(category_id)
    labels, strays = _labels(files, classes, np.array(image), np.array(category))
    texts = _first_captions(captions)
    return _Part(files, classes, labels, [texts.get(number, "") for number in files], strays)


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

    with path.open("rb") as file:
        mark = file.read(len(BYTE_ORDER_MARK))
        file.seek(len(mark) if mark == BYTE_ORDER_MARK else 0)
        start = file.tell()
        if not file.read(CHUNK).lstrip().startswith(b"{"):
            raise DataError(f"{path} is not a JSON object; download the file again.")
        file.seek(start)
        try:
            yield from ijson.items(file, f"{key}.item", use_float=True, buf_size=CHUNK)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise DataError(f"{path} is not valid JSON ({error}); download the file again.") from error


def _labels(files: Mapping[int, str], classes: Mapping[int, str], image: Any, category: Any) -> tuple[LabelArray, int]:
    """Labels (images, categories), and the number of annotations of other images or categories."""
    labels = np.zeros((len(files), len(classes)), dtype=np.uint8)
    listed, known = np.array([*files], dtype=np.int64), np.array([*classes], dtype=np.int64)
    here = np.isin(image, listed) & np.isin(category, known)
    labels[np.searchsorted(listed, image[here]), np.searchsorted(known, category[here])] = 1
    return labels, int((~here).sum())


def _first_captions(path: Path) -> dict[int, str]:
    """Image number -> its first caption that is not blank, with single blanks."""
    texts: dict[int, str] = {}
    for image, caption in _fields(path, "annotations", "image_id", "caption"):
        if image not in texts and caption.strip():
            texts[image] = " ".join(caption.split())
    return texts
