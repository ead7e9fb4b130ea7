"""MIRFLICKR-25K as published: images, one file of tags per image, one list of images per topic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.base import (
    SEED_UNKNOWN,
    TENTH,
    Benchmark,
    Protocol,
    Source,
    bag_of_tags,
    find,
    image_paths,
    text_lines,
)
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

TOPICS = (
    "animals", "baby", "bird", "car", "clouds", "dog", "female", "flower", "food", "indoor", "lake", "male",
    "night", "people", "plant_life", "portrait", "river", "sea", "sky", "structures", "sunset", "transport", "tree",
    "water",
)  # fmt: skip
LEAST_IMAGES = 20  # that a tag of the vocabulary has
ANNOTATIONS = "mirflickr25k_annotations_v080"

MIRFLICKR25K = Benchmark(
    name="mirflickr25k",
    title="MIRFLICKR-25K (LIACS Medialab, Leiden University)",
    published="mirflickr25k.zip and mirflickr25k_annotations_v080.zip at https://press.liacs.nl/mirflickr/mirdownload.html",
    licence="images under individual Creative Commons licences (meta/license); annotations for research",
    citation="M. J. Huiskes, M. S. Lew: The MIR Flickr Retrieval Evaluation. ACM MIR 2008",
    marker="meta/tags",
    layout="im*.jpg, meta/tags/tags*.txt, doc/common_tags.txt, mirflickr25k_annotations_v080/<topic>.txt",
    text_width=1386,
    protocols=(
        Protocol("paper", "RMSH: 18,006 database and training, 2,000 queries", queries=2000, database=18_006),
        Protocol(
            "dcmh", "DCMH's counts: 2,000 queries, the rest database, 10,000 training", queries=2000, train=10_000
        ),
        Protocol(
            "dcmh-rows",
            "DCMH's exact split, if the rows are in the order of its files: first 2,000 queries, next 10,000 training",
            queries=2000,
            train=10_000,
            in_order=True,
        ),
        Protocol("djsrh", "DJSRH's counts: 2,000 queries, the rest database, 5,000 training", queries=2000, train=5000),
        TENTH,
    ),
    open_points=(
        SEED_UNKNOWN,
        "The paper's 18,006 + 2,000 are 20,006 pairs; the matrices in common use have 20,015. Which nine the paper "
        "omits is unknown; as many are omitted at random.",
        "A pair without tags is one without any of the 1,386 tags that are on at least 20 of the 25,000 images "
        "(doc/common_tags.txt); the labels are the 24 topics, not the 14 stricter ones (_r1).",
    ),
)


def read(root: Path) -> Source:
    """Read every image that has a file of tags or a topic from the folder with the unpacked files."""
    tag_folder = find(root, "meta/tags")
    topic_files = {topic: find(root, f"{ANNOTATIONS}/{topic}.txt", f"{topic}.txt") for topic in TOPICS}
    missing = [f"{ANNOTATIONS}/{topic}.txt" for topic, path in topic_files.items() if path is None]
    if tag_folder is None:
        raise MIRFLICKR25K.missing_files(root, ["meta/tags", *missing])
    if missing:
        raise MIRFLICKR25K.missing_files(root, missing)
    topics = {topic: _numbers(path) for topic, path in topic_files.items() if path is not None}
    tags = _read_tags(tag_folder)
    numbers = sorted({*tags, *(number for members in topics.values() for number in members)})
    base = tag_folder.parent.parent
    vocabulary, note = _vocabulary(base / "doc" / "common_tags.txt", tags)
    images, present = image_paths(base, [f"im{number}.jpg" for number in numbers])
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
    """The ID of an image from its number or file name, such as "im7" from "7" or "mirflickr/im7.jpg"."""
    digits = re.search(r"(\d+)(\.\w+)?$", name)
    return f"im{int(digits[1])}" if digits else name


def _numbers(path: Path) -> list[int]:
    lines = [line for line in text_lines(path) if line]
    wrong = next((line for line in lines if not line.isdecimal()), None)
    if wrong is not None:
        raise DataError(f"{path}: the line {wrong[:40]!r} is not an image number; download the file again.")
    return [int(line) for line in lines]


def _read_tags(folder: Path) -> dict[int, list[str]]:
    """Image number -> its tags; an image without tags has an empty file."""
    named = ((re.fullmatch(r"tags(\d+)\.txt", path.name), path) for path in folder.iterdir())
    return {int(match[1]): [tag for tag in text_lines(path) if tag] for match, path in named if match}


def _vocabulary(path: Path, tags: Mapping[int, Iterable[str]]) -> tuple[tuple[str, ...], str]:
    """The published list of common tags, each followed by its count; or else the tags that are common here."""
    if path.is_file():
        words = tuple(line.split()[0] for line in text_lines(path) if line)
        return words, f"{len(words):,} tags were taken from doc/common_tags.txt"
    counts = Counter(tag for members in tags.values() for tag in {*members})
    common = [(tag, count) for tag, count in counts.items() if count >= LEAST_IMAGES]
    if not common:
        raise DataError(
            f"{path} is missing, and no tag is on at least {LEAST_IMAGES} of the {len(tags)} images; give the "
            "whole data set, or the published doc folder."
        )
    words = tuple(tag for tag, _ in sorted(common, key=lambda pair: (-pair[1], pair[0])))
    return words, f"{len(words):,} tags are on at least {LEAST_IMAGES} images; doc/common_tags.txt is missing"


def _labels(numbers: list[int], topics: Mapping[str, list[int]]) -> LabelArray:
    return np.stack([np.isin(numbers, members) for members in topics.values()], axis=1).astype(np.uint8)
