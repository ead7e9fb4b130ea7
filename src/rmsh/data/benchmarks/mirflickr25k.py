"""MIRFLICKR-25K as its owner publishes it: pictures, one file of tags a picture, one list of pictures a topic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.published import Source, bag_of_tags, find, missing_files, pictures, text_lines
from rmsh.data.benchmarks.registry import MIRFLICKR25K
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

TOPICS = (
    "animals", "baby", "bird", "car", "clouds", "dog", "female", "flower", "food", "indoor", "lake", "male",
    "night", "people", "plant_life", "portrait", "river", "sea", "sky", "structures", "sunset", "transport", "tree",
    "water",
)  # fmt: skip
LEAST_PICTURES = 20  # a tag of the vocabulary is on at least as many pictures
ANNOTATIONS = "mirflickr25k_annotations_v080"


def read(root: Path) -> Source:
    """Read every picture that has a file of tags or a topic.

    Args:
        root: the folder into which the owner's files were unpacked.

    Raises:
        DataError: files are missing, or a line of them is not what it should be.
    """
    tag_folder = find(root, "meta/tags")
    topic_files = {topic: find(root, f"{ANNOTATIONS}/{topic}.txt", f"{topic}.txt") for topic in TOPICS}
    missing = [f"{ANNOTATIONS}/{topic}.txt" for topic, path in topic_files.items() if path is None]
    if tag_folder is None:
        raise missing_files(root, ["meta/tags", *missing], MIRFLICKR25K)
    if missing:
        raise missing_files(root, missing, MIRFLICKR25K)
    topics = {topic: _numbers(path) for topic, path in topic_files.items() if path is not None}
    tags = _read_tags(tag_folder)
    numbers = sorted({*tags, *(number for members in topics.values() for number in members)})
    base = tag_folder.parent.parent
    vocabulary, note = _vocabulary(base / "doc" / "common_tags.txt", tags)
    images, present = pictures(base, [f"im{number}.jpg" for number in numbers])
    pairs = Pairs(
        ids=np.array([f"im{number}" for number in numbers]),
        images=images,
        has_image=present,  # type: ignore[arg-type]  # None: all or none
        texts=bag_of_tags((tags.get(number, ()) for number in numbers), vocabulary),
        labels=_labels(numbers, topics),
        class_names=TOPICS,
        source=str(root),
    )
    inputs = tuple(path for path in topic_files.values() if path is not None)
    return Source(pairs, vocabulary=vocabulary, notes=(note,), inputs=inputs, canonical_id=_canonical_id)


def _canonical_id(name: str) -> str:
    """The id of a picture from its number or file name, such as "im7" from "7" or "mirflickr/im7.jpg"."""
    digits = re.search(r"(\d+)(\.\w+)?$", name)
    return f"im{int(digits[1])}" if digits else name


def _numbers(path: Path) -> list[int]:
    lines = [line for line in text_lines(path) if line]
    wrong = next((line for line in lines if not line.isdecimal()), None)
    if wrong is not None:
        raise DataError(f"{path}: the line {wrong[:40]!r} is no picture number; get the file anew.")
    return [int(line) for line in lines]


def _read_tags(folder: Path) -> dict[int, list[str]]:
    """Picture number -> its tags; a picture without tags has an empty file."""
    named = ((re.fullmatch(r"tags(\d+)\.txt", path.name), path) for path in folder.iterdir())
    return {int(match[1]): [tag for tag in text_lines(path) if tag] for match, path in named if match}


def _vocabulary(path: Path, tags: Mapping[int, Iterable[str]]) -> tuple[tuple[str, ...], str]:
    """The owner's list of common tags, each with its count behind it; without it, the tags that are common here."""
    if path.is_file():
        words = tuple(line.split()[0] for line in text_lines(path) if line)
        return words, f"{len(words):,} tags were taken from doc/common_tags.txt"
    counts = Counter(tag for members in tags.values() for tag in {*members})
    common = [(tag, count) for tag, count in counts.items() if count >= LEAST_PICTURES]
    if not common:
        raise DataError(
            f"{path} is missing, and no tag is on at least {LEAST_PICTURES} of the {len(tags)} pictures; give the "
            "whole data set, or the owner's doc folder."
        )
    words = tuple(tag for tag, _ in sorted(common, key=lambda pair: (-pair[1], pair[0])))
    return words, f"{len(words):,} tags are on at least {LEAST_PICTURES} pictures; doc/common_tags.txt is missing"


def _labels(numbers: list[int], topics: Mapping[str, list[int]]) -> LabelArray:
    return np.stack([np.isin(numbers, members) for members in topics.values()], axis=1).astype(np.uint8)
