"""MIRFLICKR-25K as published: images, one file of tags per image, one list of images per topic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.base import BENCHMARKS, Source, bag_of_words, image_columns, image_number, text_lines
from rmsh.data.pairs import Pairs

TOPICS = (
    "animals", "baby", "bird", "car", "clouds", "dog", "female", "flower", "food", "indoor", "lake", "male",
    "night", "people", "plant_life", "portrait", "river", "sea", "sky", "structures", "sunset", "transport", "tree",
    "water",
)  # fmt: skip
LEAST_IMAGES = 20  # that a tag of the vocabulary has
ANNOTATIONS = "mirflickr25k_annotations_v080"


def read(root: Path) -> Source:
    """Read every image that has a file of tags or a topic from the folder with the unpacked files."""
    files = {"meta/tags": ["meta/tags"]}
    files |= {f"{ANNOTATIONS}/{topic}.txt": [f"{ANNOTATIONS}/{topic}.txt", f"{topic}.txt"] for topic in TOPICS}
    tag_folder, *topic_files = BENCHMARKS["mirflickr25k"].find_files(root, files).values()
    members = [_numbers(path) for path in topic_files]
    named = ((re.fullmatch(r"tags(\d+)\.txt", path.name), path) for path in tag_folder.iterdir())
    tags = {int(match[1]): text_lines(path) for match, path in named if match}  # no tags: an empty file
    numbers = sorted({*tags}.union(*members))
    base = tag_folder.parent.parent
    vocabulary, note = _vocabulary(base / "doc" / "common_tags.txt", tags)
    column = {word: i for i, word in enumerate(vocabulary)}
    words = [sorted({column[tag] for tag in tags.get(number, ()) if tag in column}) for number in numbers]
    pairs = Pairs(
        ids=np.array([f"im{number}" for number in numbers]),
        texts=bag_of_words([np.array(row, dtype=np.int64) for row in words], len(vocabulary)),
        labels=np.stack([np.isin(numbers, listed) for listed in members], axis=1),
        class_names=TOPICS,
        source=str(root),
        **image_columns([base.resolve()] * len(numbers), [f"im{number}.jpg" for number in numbers]),
    )
    return Source(pairs, None, vocabulary, (note,), tuple(topic_files), lambda name: f"im{image_number(name)}")


def _numbers(path: Path) -> list[int]:
    lines = text_lines(path)
    wrong = next((line for line in lines if not line.isdecimal()), None)
    if wrong is not None:
        raise DataError(f"{path}: the line {wrong[:40]!r} is not an image number; download the file again.")
    return [int(line) for line in lines]


def _vocabulary(path: Path, tags: Mapping[int, Iterable[str]]) -> tuple[tuple[str, ...], str]:
    """The published list of common tags, each followed by its count; or else the tags that are common here."""
    if path.is_file():
        words = tuple(line.split()[0] for line in text_lines(path))
        return words, f"{len(words):,} tags were taken from doc/common_tags.txt"
    counts = Counter(tag for members in tags.values() for tag in {*members})
    words = tuple(sorted((t for t, n in counts.items() if n >= LEAST_IMAGES), key=lambda tag: (-counts[tag], tag)))
    if not words:
        rare = f"no tag is on at least {LEAST_IMAGES} of the {len(tags)} images"
        raise DataError(f"{path} is missing, and {rare}; give the whole data set, or the published doc folder.")
    return words, f"{len(words):,} tags are on at least {LEAST_IMAGES} images; doc/common_tags.txt is missing"
