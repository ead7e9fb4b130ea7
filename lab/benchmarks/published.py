"""Read MIRFLICKR-25K, NUS-WIDE and MS COCO 2014 from the files of their publishers."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import ijson
import numpy as np
from scipy import sparse

from lab.benchmarks.declarations import BENCHMARKS, find
from rmsh.core.errors import DataError
from rmsh.core.files import open_regular
from rmsh.data.pairs import Pairs, bag_of_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, LabelArray

TOPICS = (  # of MIRFLICKR-25K
    "animals", "baby", "bird", "car", "clouds", "dog", "female", "flower", "food", "indoor", "lake", "male",
    "night", "people", "plant_life", "portrait", "river", "sea", "sky", "structures", "sunset", "transport", "tree",
    "water",
)  # fmt: skip
_ANNOTATIONS = "mirflickr25k_annotations_v080"
_LEAST_IMAGES = 20  # that a tag of MIRFLICKR-25K has
_LIST, _WORDS = "ImageList/Imagelist.txt", "NUS_WID_Tags/TagList1k.txt"  # of NUS-WIDE
_CHUNK = 1 << 20  # bytes of JSON read at a time


@dataclass(frozen=True, eq=False)
class Source:
    """A benchmark as published, before anything is removed."""

    pairs: Pairs  # every published item, in the published order; images are paths, or None
    part: NDArray[np.str_] | None = None  # (n,) published part of each item ("train", "val"), if there are several
    vocabulary: tuple[str, ...] = ()  # words of the columns of a bag of words
    notes: tuple[str, ...] = ()  # sentences about what was found
    inputs: tuple[Path, ...] = ()  # files whose hashes identify the release
    canonical_id: Callable[[str], str] = str  # maps another spelling of an ID, such as a file name, to the ID

    @property
    def worded(self) -> BitArray:
        """(n,) mask of the items whose text has at least one word of the vocabulary."""
        texts: Any = self.pairs.texts
        words: BitArray = np.diff(texts.indptr) > 0 if sparse.issparse(texts) else self.pairs.has_text
        return self.pairs.has_text & words


def read_mirflickr25k(root: Path) -> Source:
    """Every image that has a file of tags or is in the list of a topic."""
    files = {"meta/tags": ["meta/tags"]}
    files |= {f"{_ANNOTATIONS}/{topic}.txt": [f"{_ANNOTATIONS}/{topic}.txt", f"{topic}.txt"] for topic in TOPICS}
    tag_folder, *topic_files = BENCHMARKS["mirflickr25k"].find_files(root, files).values()
    members = [_numbers(path) for path in topic_files]
    named = ((re.fullmatch(r"tags(\d+)\.txt", path.name), path) for path in tag_folder.iterdir())
    tags = {int(match[1]): _text_lines(path) for match, path in named if match}  # no tags: an empty file
    numbers = sorted({*tags}.union(*members))
    base = tag_folder.parent.parent
    vocabulary, note = _common_tags(base / "doc" / "common_tags.txt", tags)
    column = {word: i for i, word in enumerate(vocabulary)}
    words = [sorted({column[tag] for tag in tags.get(number, ()) if tag in column}) for number in numbers]
    pairs = Pairs(
        ids=np.array([f"im{number}" for number in numbers]),
        texts=bag_of_words(words, len(vocabulary)),
        labels=np.stack([np.isin(numbers, listed) for listed in members], axis=1),
        class_names=TOPICS,
        source=str(root),
        **_image_columns([base.resolve()] * len(numbers), [f"im{number}.jpg" for number in numbers]),
    )
    return Source(pairs, None, vocabulary, (note,), tuple(topic_files), lambda name: f"im{_image_number(name)}")


def _numbers(path: Path) -> list[int]:
    lines = _text_lines(path)
    wrong = next((line for line in lines if not line.isdecimal()), None)
    if wrong is not None:
        raise DataError(f"{path}: the line {wrong[:40]!r} is not an image number; download the file again.")
    return [int(line) for line in lines]


def _common_tags(path: Path, tags: Mapping[int, Iterable[str]]) -> tuple[tuple[str, ...], str]:
    """The published list of common tags, each followed by its count; or else the tags that are common here."""
    if path.is_file():
        words = tuple(line.split()[0] for line in _text_lines(path))
        return words, f"{len(words):,} tags were taken from doc/common_tags.txt"
    counts = Counter(tag for members in tags.values() for tag in {*members})
    words = tuple(sorted((t for t, n in counts.items() if n >= _LEAST_IMAGES), key=lambda tag: (-counts[tag], tag)))
    if not words:
        rare = f"no tag is on at least {_LEAST_IMAGES} of the {len(tags)} images"
        raise DataError(f"{path} is missing, and {rare}; give the whole data set, or the published doc folder.")
    return words, f"{len(words):,} tags are on at least {_LEAST_IMAGES} images; doc/common_tags.txt is missing"


def read_nuswide(root: Path) -> Source:
    """Every image of the published list, with its concepts and tags."""
    files = {
        _LIST: (_LIST, "ImageList/ImageList.txt", "Imagelist.txt", "ImageList.txt"),
        "ConceptsList/Concepts81.txt": ("ConceptsList/Concepts81.txt", "Concepts81.txt"),
        "Groundtruth/AllLabels": ("Groundtruth/AllLabels", "AllLabels"),
        _WORDS: (_WORDS, "TagList1k.txt"),
        "NUS_WID_Tags/AllTags1k.txt": ("NUS_WID_Tags/AllTags1k.txt", "AllTags1k.txt"),
    }
    image_list, concepts, labels, words, tags = BENCHMARKS["nuswide"].find_files(root, files).values()
    names = [PureWindowsPath(line).as_posix() for line in _text_lines(image_list)]
    classes, vocabulary = tuple(_text_lines(concepts)), tuple(_text_lines(words))
    folder = (find(root, "Flickr", "images") or root / "Flickr").resolve()
    pairs = Pairs(
        ids=np.array([_nuswide_id(name) for name in names]),
        texts=_nuswide_tags(tags, len(names), len(vocabulary)),
        labels=_nuswide_labels(labels, classes, len(names)),
        class_names=classes,
        source=str(root),
        **_image_columns([folder] * len(names), names),
    )
    return Source(pairs, None, vocabulary, (), (image_list, concepts, words, tags), _nuswide_id)


def _nuswide_id(name: str) -> str:
    r"""The ID of an image from its path in the list, such as "actor/0001_212" from "actor\0001_212.jpg"."""
    path = PureWindowsPath(name)
    return path.with_suffix("").as_posix() if path.suffix.lower() == ".jpg" else path.as_posix()


def _nuswide_labels(folder: Path, classes: tuple[str, ...], n: int) -> LabelArray:
    """One column per concept, in the order of the published list of concepts."""
    names = [f"Labels_{name}.txt" for name in classes]
    labels = np.empty((n, len(classes)), dtype=np.uint8)
    for column, path in enumerate(BENCHMARKS["nuswide"].find_files(folder, {name: [name] for name in names}).values()):
        labels[:, column] = _digits(path.read_bytes(), n, f"{path}: one 0 or 1 for each of the {n} images of {_LIST}")
    return labels


def _nuswide_tags(path: Path, n: int, words: int) -> Any:
    """Rows of 0/1 separated by blanks, as CSR; read by line, because the file has half a gigabyte."""
    rows: list[Any] = []
    with open_regular(path) as file:
        for line in filter(bytes.strip, file):
            where = f"{path}, row {len(rows) + 1}: one 0 or 1 for each of the {words} words of {_WORDS}"
            rows.append(np.flatnonzero(_digits(line, words, where)).astype(np.int32))
    if len(rows) != n:
        raise DataError(f"{path} has {len(rows)} rows for the {n} images of {_LIST}; download both files again.")
    return bag_of_words(rows, words)


def _digits(content: bytes, count: int, expected: str) -> LabelArray:
    """Zeros and ones separated by blanks, uint8 (count,)."""
    digits = np.frombuffer(content.translate(None, b" \t\r\n"), dtype=np.uint8) - ord("0")
    if len(digits) != count or digits.max(initial=0) > 1:
        raise DataError(f"{expected} is expected, but got {len(digits)} characters. Download the file again.")
    return digits


def read_mscoco(root: Path) -> Source:
    """Every image of the training and the validation part, with its categories and its first caption."""
    parts = ("train", "val")
    names = [f"{kind}_{part}2014.json" for kind in ("instances", "captions") for part in parts]
    files = {f"annotations/{name}": (f"annotations/{name}", name) for name in names}
    inputs = tuple(BENCHMARKS["mscoco"].find_files(root, files).values())
    instances, captions = inputs[:2], inputs[2:]
    listed = [sorted(_fields(path, "images", "id", "file_name")) for path in instances]
    numbers = [number for part in listed for number, _ in part]
    part = np.repeat(parts, [len(part) for part in listed])
    classes, *others = (dict(sorted(_fields(path, "categories", "id", "name"))) for path in instances)
    if others != [classes]:
        raise DataError(f"{root}: the categories of train2014 and val2014 differ; download both from one release.")
    labels, strays = _mscoco_labels(instances, numbers, [*classes])
    first: dict[int, str] = {}  # the first caption of an image that is not blank, with single blanks
    for path in captions:
        for image, caption in _fields(path, "annotations", "image_id", "caption"):
            if image not in first and caption.strip():
                first[image] = " ".join(caption.split())
    texts = np.array([first.get(number, "") for number in numbers])
    folders = {name: (find(root, f"{name}2014") or root / f"{name}2014").resolve() for name in parts}
    pairs = Pairs(
        ids=np.array(numbers).astype(np.str_),
        texts=texts,
        has_text=texts != "",
        labels=labels,
        class_names=tuple(classes.values()),
        source=str(root),
        **_image_columns([folders[name] for name in part], [name for part in listed for _, name in part]),
    )
    notes = (f"{strays:,} annotations of images that are not listed were skipped",) if strays else ()
    return Source(pairs, part, (), notes, inputs, _image_number)


def _mscoco_labels(paths: Sequence[Path], images: Sequence[int], categories: Sequence[int]) -> tuple[LabelArray, int]:
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
    with open_regular(path) as file:
        head = file.read(_CHUNK)
        start = len(BOM_UTF8) if head.startswith(BOM_UTF8) else 0
        if not head[start:].lstrip().startswith(b"{"):
            raise DataError(f"{path} is not a JSON object; download the file again.")
        file.seek(start)
        try:
            yield from ijson.items(file, f"{key}.item", use_float=True, buf_size=_CHUNK)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise DataError(f"{path} is not valid JSON ({error}); download the file again.") from error


def _text_lines(path: Path) -> list[str]:
    """The stripped lines of a text file in UTF-8, or else Latin-1, without empty ones."""
    with open_regular(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [stripped for line in text.split("\n") if (stripped := line.strip())]


def _image_number(name: str) -> str:
    """The number at the end of a name, such as "9" of "COCO_train2014_000000000009.jpg"; else the name itself."""
    digits = re.search(r"(\d+)(\.\w+)?$", name)
    return str(int(digits[1])) if digits else name


def _image_columns(folders: Sequence[Path], names: Sequence[str]) -> dict[str, Any]:
    """Columns of Pairs: the path of each image in its folder, and a mask of those that exist; empty if none does."""
    paths = [os.path.join(folder, name) for folder, name in zip(folders, names, strict=True)]
    present = np.array([os.path.isfile(path) for path in paths])
    return {"images": np.array(paths), "has_image": present} if present.any() else {}
