"""Folders of photographs: mixed files through builds and syncs, planted duplicates, and a sync with nothing to do."""

from __future__ import annotations

import csv
import os
import re
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from PIL import Image

from lab.data import PROJECT, coco66k_root, write_measurement
from rmsh.builder import build
from rmsh.builder.source import read_files
from rmsh.builder.sync import Synced, sync
from rmsh.codes import Codes
from rmsh.compare.provenance import forget_peak_memory, peak_memory_mb
from rmsh.core.files import printable
from rmsh.data.records import Origin
from rmsh.library import Item, Library
from rmsh.library.duplicates import LIKELY, SURE, groups_in, similar_pairs
from rmsh.library.verify import verify
from rmsh.models import wheel_model

if TYPE_CHECKING:
    from rmsh.core.types import PackedArray

_COPIES = 300  # of each kind
_PLANTED = 20_000  # pairs of synthetic looks

# Kinds of mixed files by their number modulo 20, or an odd name; the others are plain, most without a text.
_MIXED = {
    0: "captioned",
    10: "captioned",
    1: "HEIC",
    2: "broken",
    3: "copied",
    4: "odd name é ß 犬 🐕 #{} 100% 'a' \"b\" [c].JPG",
    5: "a line\nbreak {}.jpg",
}
_CHANGED = ("plain", "broken", "captioned")


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


def _read_photographs() -> Iterator[tuple[str, bytes]]:
    """Name and content of the photographs of coco66k."""
    with tarfile.open(Path(coco66k_root()) / "images.tar") as archive:
        for member in archive:
            if member.isfile() and (content := archive.extractfile(member)) is not None:
                yield Path(member.name).name, content.read()


def _plant(images: Path, photographs: Sequence[tuple[str, bytes]], captions: Mapping[str, str]) -> dict[str, str]:
    """Write photographs as people have them; returns the kind of each file by its path."""
    heic, kinds = (PROJECT / "tests" / "samples" / "phone.heic").read_bytes(), {}
    for number, (name, content) in enumerate(photographs):
        kind = _MIXED.get(number % 20, "plain")
        folder = f"{2015 + number % 9}/{number % 12 + 1:02} trip {number % 7}"
        path = images / folder / kind.format(number) if "{" in kind else images / folder / f"IMG_{number:04}.jpg"
        kind = "line break" if "\n" in kind else "odd name" if "{" in kind else kind
        if kind == "HEIC":
            path, content = path.with_suffix(".HEIC"), heic
        elif kind == "broken":
            content = (content[: len(content) // 3], b"", b"not an image")[number // 20 % 3]
        elif kind == "copied":
            kinds[f"{folder}/IMG_{number:04} (1).jpg"] = "copy"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if kind == "copied":
            path.with_name(f"{path.stem} (1).jpg").write_bytes(content)
        if kind == "captioned":
            text = captions[str(int(Path(name).stem))]
            path.with_suffix(".txt").write_text(f"{text} à la carte" if number % 40 == 0 else text, encoding="cp1252")
        kinds[path.relative_to(images).as_posix()] = kind
    (images / "2015" / ".hidden").mkdir(parents=True)
    (images / "2015" / "list.pdf").write_bytes(b"neither an image nor a text")
    return kinds


def mixed(work: Path, count: int = 2_000) -> dict[str, Any]:
    """Build a library of mixed files, change the files and sync; what was done, and what was lost or not explained."""
    images, photographs = work / "images", list(islice(_read_photographs(), count + count // 50))
    captions = dict(line.split("\t")[::2] for line in (Path(coco66k_root()) / "pairs.tsv").read_text().splitlines())
    kinds = _plant(images, photographs[:count], captions)
    planted = Counter(kinds.values())
    built = build(images, work / "library")
    with (work / "library" / "skipped.csv").open(newline="") as file:
        skipped = list(csv.DictReader(file))
    with Library.open(work / "library", writable=True) as library:
        wrong = _unaccounted(library, kinds, {row["id"] for row in skipped})
        planned, renamed = _change(images, kinds, [content for _, content in photographs[count:]])
        codes = library.codes([*renamed.values()], "image").packed.tolist()
        first, second = sync(library), sync(library)
        moved = library.codes([*renamed], "image").packed.tolist()
        wrong += _unaccounted(library, kinds, {one.id for one in first.skipped})
        idle = sync(library)
        items = library.count()
    damaged = verify(work / "library", images=True).images
    return {
        "files": count,
        "kinds": dict(planted),
        "built": built.report["counts"]["items"],
        "skipped": dict(Counter(_kind_of(row["reason"]) for row in skipped)),
        "planned": planned,
        "first sync": {name: getattr(first, name) for name in ("added", "changed", "moved", "removed")}
        | {"missing": len(first.missing)},
        "second sync": {"removed": second.removed},
        "items": items,
        "neither items nor explained": len(wrong),
        "codes changed by a move": sum(one != other for one, other in zip(codes, moved, strict=True)),
        "wrong files": {kind: len(ids) for kind, ids in damaged.items()},
        "nothing left to do": (idle.added, idle.changed, idle.moved, idle.removed, len(idle.missing)) == (0,) * 5,
    }


def _kind_of(reason: str) -> str:
    """A reason without the name of the file and what to do."""
    return re.sub(r"^/.*\.jpg ", "", reason).partition(";")[0].partition(":")[0].partition(" (")[0]


def _unaccounted(library: Library, kinds: Mapping[str, str], skipped: Collection[str]) -> list[str]:
    """Files that are neither items nor skipped with a reason, intact files that are skipped, and items without file."""
    items = {name for name in kinds if library.get(printable(name)) is not None}
    lost = [name for name in kinds if name not in items and printable(name) not in skipped]
    refused = [name for name, kind in kinds.items() if kind not in ("broken", "line break") and name not in items]
    return lost + refused + ["an item without a file"] * (library.count() - len(items))


def _change(images: Path, kinds: dict[str, str], new: Sequence[bytes]) -> tuple[dict[str, int], dict[str, str]]:
    """Rename, edit, repair, delete and add files; returns how many of each, and the former names of renamed files."""
    plain, broken, captioned = ([name for name in kinds if kinds[name] == kind] for kind in _CHANGED)
    share = len(plain) // 12
    renamed = {f"sorted/{number}.jpg": name for number, name in enumerate(plain[: 2 * share])}
    edited, deleted, repaired = plain[2 * share : 3 * share], plain[3 * share : 4 * share], broken[: len(new) // 4]
    (images / "sorted").mkdir()
    for name, old in renamed.items():
        (images / old).rename(images / name)
        kinds[name] = kinds.pop(old)
    for name in edited:
        with Image.open(images / name) as image:
            image.convert("RGB").rotate(90, expand=True).save(images / name)
    for name in deleted:
        (images / name).unlink()
        del kinds[name]
    for name, content in zip(repaired, new, strict=False):
        (images / name).write_bytes(content)
        kinds[name] = "plain"
    for number, content in enumerate(new[len(repaired) :]):
        (images / "sorted" / f"new {number}.jpg").write_bytes(content)
        kinds[f"sorted/new {number}.jpg"] = "plain"
    for name in captioned[:share]:
        (images / name).with_suffix(".txt").write_text("a caption that was written later")
    changed = len(edited) + len(captioned[:share])
    planned = {"added": len(new), "changed": changed, "moved": len(renamed), "missing": len(deleted)}
    return planned, renamed


def photographs(work: Path) -> dict[str, Any]:
    """Recall of each kind of planted copy, and the groups that connect different photographs."""
    images = work / "images"
    images.mkdir(parents=True)
    for name, content in _read_photographs():
        (images / name).write_bytes(content)
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
    pairs = [
        len({one.partition(".")[0].partition("-")[0], other.partition(".")[0].partition("-")[0]}) == 1
        for group in groups
        for one, other in combinations(sorted(group), 2)
    ]
    return {
        "photographs": len(originals),
        "bits": {"sure": SURE, "likely": LIKELY},
        "recall": {
            kind: sum(is_found(name, number) for name in names) / len(names)
            for number, (kind, names) in enumerate(planted.items())
        },
        "precision": sum(pairs) / len(pairs),  # pairs of one group that are the same photograph
        "groups": len(groups),
        "groups of different photographs": len(wrong),
        "seconds": round(seconds, 2),
    }


def looks(_work: Path, count: int = 1_000_000) -> dict[str, Any]:
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


def idle_sync(work: Path, count: int = 100_000) -> dict[str, Any]:
    """The time of a sync after which nothing has changed; the files are links to a few, and codes are random."""
    images = work / "images"
    for first in range(0, count, 1000):
        folder = images / f"{first // 1000:03}"
        folder.mkdir(parents=True)
        for number in range(first, min(first + 1000, count)):
            if number > first:
                os.link(folder / f"{first}.jpg", folder / f"{number}.jpg")
            else:  # a file has at most 65,000 links
                Image.linear_gradient("L").save(folder / f"{first}.jpg")
                os.utime(folder / f"{first}.jpg", (0, 0))
    names = sorted(path.relative_to(images).as_posix() for path in images.rglob("*.jpg"))
    file, model = read_files(Origin(images, (), ()), names[:1], known={})[names[0]], wheel_model()
    values = np.random.default_rng(0).standard_normal((1000, model.bits))
    with Library.create(work / "library", model, source=images) as library:
        for first in range(0, count, 1000):
            ids = names[first : first + 1000]
            codes = Codes.from_values(values[: len(ids)], ids)
            items = [Item(name, text=(kind := name[:3]), picture=name, labels=(kind,)) for name in ids]
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


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "mixed": mixed,
    "duplicates": photographs,
    "looks": looks,
    "sync": idle_sync,
}


def main(
    part: Annotated[str | None, typer.Argument(help=f"One of {', '.join(PARTS)}; all by default.")] = None,
) -> None:
    """Build and sync mixed files, find planted duplicates, time a sync without changes, and print the figures."""
    for name in PARTS if part is None else [part]:
        with tempfile.TemporaryDirectory() as folder:
            found = PARTS[name](Path(folder))
        write_measurement(f"photos/{name}", found)
        print(name, found)
