"""How long a COCO tree takes to prepare, and how much memory: 100,000 made-up pictures, annotated like the real ones.

The files have the size of the owner's: outlines of about 30 points, seven objects and five captions a picture.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.speed.data import RESULTS
from rmsh.core.files import write_json

PICTURES = {"train": 67_000, "val": 33_000}
CATEGORIES = [number for number in range(1, 91) if number % 9]  # 80 numbers with gaps, as in COCO
OBJECTS, CAPTIONS = 7, 5
WORDS = ("a", "man", "dog", "red", "bus", "on", "the", "street", "next", "to", "two", "small", "children", "café")


def main(arguments: argparse.Namespace) -> None:
    """Write the tree, prepare it in a process of its own, write the JSON and print a line."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        size = write_tree(root, random.Random(arguments.seed))  # noqa: S311
        result = {"pictures": sum(PICTURES.values()), "megabytes_read": round(size / 1e6), **measure(root)}
    write_json(RESULTS / "coco_preparation.json", result)
    print(", ".join(f"{name} {value:,}" for name, value in result.items()))


def measure(root: Path) -> dict[str, Any]:
    """Seconds and megabytes of `rmsh data prepare`."""
    options = ["--root", str(root), "--out", str(root / "pairs"), "--without-images", "--quiet"]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "rmsh", "data", "prepare", "mscoco", *options], check=True, stdout=subprocess.DEVNULL
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"seconds": round(seconds, 1), "peak_megabytes": round(peak / 1024)}


def write_tree(root: Path, rng: random.Random) -> int:
    """Write both parts of the annotations, and return how many bytes they have."""
    (root / "annotations").mkdir()
    first = 1
    for part, count in PICTURES.items():
        numbers = range(first, first + 5 * count, 5)
        first = numbers[-1] + 5
        images = [{"id": n, "file_name": f"COCO_{part}2014_{n:012}.jpg", "height": 480, "width": 640} for n in numbers]
        rest = {"info": {"year": 2014}, "images": images}
        classes = [{"id": n, "name": f"thing {n}", "supercategory": "thing"} for n in CATEGORIES]
        folder = root / "annotations"
        _write(folder / f"instances_{part}2014.json", _objects(numbers, rng), rest | {"categories": classes})
        _write(folder / f"captions_{part}2014.json", _captions(numbers, rng), rest)
    return sum(path.stat().st_size for path in (root / "annotations").iterdir())


def _write(path: Path, annotations: Iterator[str], rest: dict[str, Any]) -> None:
    """A JSON object with the annotations as its last array, written one by one."""
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(rest)[:-1] + ', "annotations": [')
        file.write(next(annotations))
        file.writelines(", " + annotation for annotation in annotations)
        file.write("]}")


def _objects(numbers: range, rng: random.Random) -> Iterator[str]:
    outlines = [[round(rng.uniform(0, 640), 2) for _ in range(60)] for _ in range(500)]
    for count in range(OBJECTS * len(numbers)):
        outline = rng.choice(outlines)
        crowd = {"segmentation": {"counts": [7, 9] * 30, "size": [480, 640]}, "iscrowd": 1}
        yield json.dumps(
            {"id": count, "image_id": rng.choice(numbers), "category_id": rng.choice(CATEGORIES), "area": outline[0]}
            | {"bbox": outline[:4]}
            | ({"segmentation": [outline], "iscrowd": 0} if count % 100 else crowd)
        )


def _captions(numbers: range, rng: random.Random) -> Iterator[str]:
    for count in range(CAPTIONS * len(numbers)):
        caption = " ".join(rng.choices(WORDS, k=11)) + "."
        yield json.dumps({"id": count, "image_id": numbers[count // CAPTIONS], "caption": caption})
