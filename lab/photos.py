"""Folders of photographs: which planted duplicates are found, and how long a sync takes that finds nothing to do."""

from __future__ import annotations

import os
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from PIL import Image

from lab.data import coco66k_root, write_measurement
from rmsh.builder import build
from rmsh.builder.photos import read_files
from rmsh.builder.sync import Synced, sync
from rmsh.codes import Codes
from rmsh.compare.provenance import forget_peak_memory, peak_memory_mb
from rmsh.library import Item, Library
from rmsh.library.duplicates import LIKELY, SURE, groups_in, similar_pairs
from rmsh.models import wheel_model

if TYPE_CHECKING:
    from rmsh.core.types import PackedArray

_COPIES = 300  # of each kind
_PLANTED = 20_000  # pairs of synthetic looks


def _cropped(share: float) -> Callable[[Image.Image], Image.Image]:
    """Cut off a share of the width and height at each side."""

    def crop(image: Image.Image) -> Image.Image:
        width, height = image.size
        box = (share * width, share * height, (1 - share) * width, (1 - share) * height)
        return image.crop(tuple(map(round, box)))  # type: ignore[arg-type]

    return crop


_KINDS: dict[str, tuple[Callable[[Image.Image], Image.Image], int]] = {  # and the quality of the JPEG
    "half the size": (lambda image: image.resize((image.width // 2, image.height // 2)), 80),
    "compressed again": (lambda image: image, 30),
    "cropped by 2 %": (_cropped(0.02), 85),
    "cropped by 5 %": (_cropped(0.05), 85),
    "cropped by 10 %": (_cropped(0.10), 85),
}


def main(*, files: Annotated[int, typer.Option(min=10, help="Number of files of the sync.")] = 100_000) -> None:
    """Plant and find duplicates among photographs and among a million looks, time a sync, and print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "photographs": photographs(Path(folder) / "duplicates"),
            "looks": looks(1_000_000),
            "sync": idle_sync(Path(folder) / "sync", files),
        }
    write_measurement("speed/photos", found)
    for name, values in found.items():
        print(name, values)


def photographs(work: Path) -> dict[str, Any]:
    """Recall of each kind of planted copy, and the groups that connect different photographs."""
    images = work / "images"
    images.mkdir(parents=True)
    with tarfile.open(Path(coco66k_root()) / "images.tar") as archive:
        for member in archive:
            if member.isfile() and (content := archive.extractfile(member)) is not None:
                (images / Path(member.name).name).write_bytes(content.read())
    originals = sorted(path.stem for path in images.iterdir())
    rng = np.random.default_rng(0)
    planted: dict[str, list[str]] = {}
    for number, (kind, (change, quality)) in enumerate(_KINDS.items()):
        planted[kind] = rng.choice(originals, _COPIES, replace=False).tolist()
        for name in planted[kind]:
            with Image.open(images / f"{name}.jpg") as image:
                change(image.convert("RGB")).save(images / f"{name}-{number}.jpg", quality=quality)
    library = build(images, work / "library").library
    start = time.perf_counter()
    with Library.open(library) as opened:
        groups = [set(group.ids) for group in groups_in(opened) if group.kind == "similar"]
    seconds = time.perf_counter() - start
    of_id = {name: group for group in groups for name in group}

    def is_found(name: str, number: int) -> bool:
        return f"{name}.jpg" in of_id.get(f"{name}-{number}.jpg", ())

    wrong = [group for group in groups if len({name.partition(".")[0].partition("-")[0] for name in group}) > 1]
    return {
        "photographs": len(originals),
        "bits": {"sure": SURE, "likely": LIKELY},
        "recall": {
            kind: sum(is_found(name, number) for name in names) / len(names)
            for number, (kind, names) in enumerate(planted.items())
        },
        "groups": len(groups),
        "groups of different photographs": len(wrong),
        "seconds": round(seconds, 2),
    }


def looks(count: int) -> dict[str, Any]:
    """Whether all planted pairs within the radius are found among random looks, with time and memory."""
    rng = np.random.default_rng(0)
    codes: PackedArray = rng.integers(0, 256, (count, 8), dtype=np.uint8)
    rows = rng.permutation(count)[: 2 * _PLANTED].reshape(2, _PLANTED)
    flips = np.zeros((_PLANTED, 64), dtype=np.bool_)
    for row, bits in enumerate(rng.integers(0, SURE + 1, _PLANTED).tolist()):
        flips[row, rng.permutation(64)[:bits]] = True
    codes[rows[1]] = codes[rows[0]] ^ np.packbits(flips, axis=1)
    forget_peak_memory()
    before, start = peak_memory_mb() or 0, time.perf_counter()
    found: set[tuple[int, int]] = set()
    for one, other in similar_pairs(codes, [None] * count):
        found.update(zip(one.tolist(), other.tolist(), strict=True))
    expected = {(min(pair), max(pair)) for pair in rows.T.tolist()}
    return {
        "looks": count,
        "planted": len(expected),
        "recall": len(expected & found) / len(expected),
        "other pairs": len(found - expected),
        "seconds": round(time.perf_counter() - start, 1),
        "more memory in MB": (peak_memory_mb() or 0) - before,
    }


def idle_sync(work: Path, count: int) -> dict[str, Any]:
    """The time of a sync after which nothing has changed; the files are links to one image, and codes are random."""
    images = work / "images"
    for first in range(0, count, 1000):
        folder = images / f"{first // 1000:03}"
        folder.mkdir(parents=True)
        for number in range(first, min(first + 1000, count)):
            if number:
                os.link(images / "000" / "0.jpg", folder / f"{number}.jpg")
            else:
                Image.linear_gradient("L").save(folder / "0.jpg")
    names = sorted(path.relative_to(images).as_posix() for path in images.rglob("*.jpg"))
    file, model = read_files(images, names[:1], known={})[names[0]], wheel_model()
    values = np.random.default_rng(0).standard_normal((1000, model.bits))
    with Library.create(work / "library", model, source=images) as library:
        for first in range(0, count, 1000):
            ids = names[first : first + 1000]
            codes = Codes.from_values(values[: len(ids)], ids)
            items = [Item(name, picture=name) for name in ids]
            library.add(items, {"image": codes}, model=model.fingerprint, files=dict.fromkeys(ids, file))
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        with Library.open(work / "library", writable=True) as opened:
            done = sync(opened)
        seconds.append(time.perf_counter() - start)
        if done != Synced():
            raise RuntimeError(f"the sync did {done}, but nothing has changed")
    return {"files": count, "first, in seconds": round(seconds[0], 2), "seconds": round(min(seconds[1:]), 2)}
