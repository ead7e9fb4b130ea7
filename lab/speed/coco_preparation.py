"""Time and memory of preparing MS COCO: 100,000 generated images with annotations of the real size.

Each image has seven objects, outlines of about 30 points, and five captions.
"""

from __future__ import annotations

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

from lab.console import Seed  # noqa: TC001  # typer reads them
from lab.data import write_measurement

IMAGES = {"train": 67_000, "val": 33_000}
CATEGORIES = [number for number in range(1, 91) if number % 9]  # 80 numbers with gaps, as in COCO
OBJECTS, CAPTIONS = 7, 5
WORDS = ("a", "man", "dog", "red", "bus", "on", "the", "street", "next", "to", "two", "small", "children", "café")


def main(*, seed: Seed = 0) -> None:
    """Write the annotations, prepare them in another process, write the result and print a line."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        size = write_tree(root, random.Random(seed))  # noqa: S311
        result = {"pictures": sum(IMAGES.values()), "megabytes_read": round(size / 1e6), **measure(root)}
    write_measurement("speed/coco_preparation", result)
    print(", ".join(f"{name} {value:,}" for name, value in result.items()))


def measure(root: Path) -> dict[str, Any]:
    """Seconds and megabytes of `make lab ARGS="prepare mscoco"`."""
    options = ["--root", str(root), "--out", str(root / "pairs"), "--without-images"]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "lab", "prepare", "mscoco", *options], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"seconds": round(seconds, 1), "peak_megabytes": round(peak / 1024)}


def write_tree(root: Path, rng: random.Random) -> int:
    """Write both parts of the annotations, and return their size in bytes."""
    (root / "annotations").mkdir()
    first = 1
    for part, count in IMAGES.items():
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
