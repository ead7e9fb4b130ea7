"""Find images that occur more than once: copies of a file, copies of an image, and bursts.

- **copies**: files with the same content.
- **similar**: the same image, resized, compressed again or slightly cropped. Their looks (:mod:`rmsh.features.photo`)
  differ in few bits; if they differ in somewhat more, as after cropping, the codes of the library must agree too. Codes
  alone would call two different dogs the same.
- **burst**: taken within seconds of each other by one camera, with codes that agree.

Nothing is deleted, here or anywhere: groups are reported, the best image first.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rmsh.codes import Codes
from rmsh.core.errors import InputError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import BitArray, IntArray, PackedArray
from rmsh.features.photo import LOOK_BITS
from rmsh.index.scan import Scan
from rmsh.library.photos import ImageFile, count_photos, read_photos
from rmsh.library.queries import items_of_rows, last_change

if TYPE_CHECKING:
    from rmsh.library import Library

Kind: TypeAlias = Literal["copies", "similar", "burst"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Bits of 64, chosen in a first trial with copies planted among 1,500 photographs; `make lab ARGS="photos"` measures it.
SURE, LIKELY = 12, 16
_AGREE = 4  # codes agree if at most a fourth of their bits differ
BURST_SECONDS = 2.0
_BLOCK = 4096  # looks compared with all others at a time


@dataclass(frozen=True)
class Group:
    """Images that belong together: what connects them, and their IDs, the best image first."""

    kind: Kind
    ids: tuple[str, ...]


def state_of(connection: sqlite3.Connection) -> tuple[int, str, int]:
    """Changes whenever facets and duplicates may change; `rmsh sync` can add facts to items that stay as they are."""
    return *last_change(connection), count_photos(connection)


def groups_in(library: Library, *, seconds: float = BURST_SECONDS, on_progress: OnProgress = ignore) -> list[Group]:
    """The groups of a library; InputError if it has no data about its image files."""
    with library.reading() as connection:
        of_row = dict(read_photos(connection))
        items = items_of_rows(connection, of_row)
    if not of_row:
        raise InputError(f"The library {library.folder} has no data about its image files; run `rmsh sync` first.")
    files = {items[row].id: file for row, file in of_row.items()}
    coded = library.codes(files, "image")
    codes = dict(zip(coded.ids.tolist(), map(bytes, coded.packed), strict=True))
    return find_groups(files, codes, seconds=seconds, on_progress=on_progress)


def find_groups(
    files: Mapping[str, ImageFile],
    codes: Mapping[str, bytes],
    *,
    seconds: float = BURST_SECONDS,
    on_progress: OnProgress = ignore,
) -> list[Group]:
    """Groups of two or more images, those with most images first.

    Args:
        files: the image files by ID.
        codes: packed codes of images by ID; an image without one is compared by its look alone.
        seconds: longest time between two images of a burst.
        on_progress: called with the number of images that were compared.
    """
    ids, of_hash = sorted(files), defaultdict(list)
    for name in ids:
        of_hash[files[name].hash].append(name)
    first = [names[0] for names in of_hash.values()]
    looks = np.array([list(files[name].photo.look) for name in first], dtype=np.uint8).reshape(-1, LOOK_BITS // 8)
    known = [codes.get(name) for name in first]
    similar = [
        [name for place in places for name in of_hash[files[first[place]].hash]]
        for places in _components(len(first), similar_pairs(looks, known, on_progress=on_progress))
    ]
    group_of = {name: number for number, names in enumerate(similar) for name in names}
    named: dict[Kind, Iterable[list[str]]] = {
        "copies": (names for names in of_hash.values() if len(names) > 1),
        "similar": similar,
        "burst": (run for run in _bursts(files, codes, seconds) if not _resized(run, files, group_of)),
    }
    groups = [Group(kind, _best_first(names, files)) for kind, found in named.items() for names in found]
    return sorted(groups, key=lambda group: (-len(group.ids), group.kind, group.ids))


def similar_pairs(
    looks: PackedArray, codes: Sequence[bytes | None], *, on_progress: OnProgress = ignore
) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of images that show the same, as two arrays of places, the smaller place first, block by block.

    Args:
        looks: uint8 (n, 8).
        codes: packed codes of one length, or None, of the same images.
    """
    index = Scan(LOOK_BITS)
    index.add(_as_codes(looks))
    has_code = np.array([code is not None for code in codes], dtype=np.bool_)
    width = max((len(code) for code in codes if code is not None), default=0)
    stacked = np.frombuffer(b"".join(code or bytes(width) for code in codes), dtype=np.uint8).reshape(len(codes), width)
    radius = LIKELY if has_code.any() else SURE
    for start in range(0, len(looks), _BLOCK):
        found = index.within(_as_codes(looks[start : start + _BLOCK]), radius)
        one = np.repeat(np.arange(start, start + len(found)), np.diff(found.offsets))
        later = one < found.rows
        one, other, distances = one[later], found.rows[later], found.distances[later]
        same = (distances <= SURE) | (has_code[one] & has_code[other] & _agree(stacked[one], stacked[other]))
        yield one[same], other[same]
        on_progress(Progress("compare images", start + len(found), len(looks), "image", 0.0))


def _as_codes(looks: PackedArray) -> Codes:
    return Codes(looks, LOOK_BITS, np.arange(len(looks)).astype(np.str_))


def _agree(one: PackedArray, other: PackedArray) -> BitArray:
    """Whether two codes differ in at most a fourth of their bits, row by row."""
    differing = np.bitwise_count(one ^ other).sum(axis=1, dtype=np.int64)
    agree: BitArray = _AGREE * differing <= 8 * one.shape[1]
    return agree


def _components(count: int, pairs: Iterable[tuple[IntArray, IntArray]]) -> list[list[int]]:
    """Places that are connected by pairs, two or more each."""
    found = [np.empty((2, 0), dtype=np.int64), *map(np.stack, pairs)]
    one, other = np.concatenate(found, axis=1)
    graph = coo_array((np.ones(len(one), dtype=np.bool_), (one, other)), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    connected = np.unique(np.concatenate([one, other]))
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for place in connected.tolist():
        groups[int(labels[place])].append(place)
    return list(groups.values())


def _bursts(files: Mapping[str, ImageFile], codes: Mapping[str, bytes], seconds: float) -> Iterator[list[str]]:
    """Images with different content, taken one shortly after the other."""
    dated = sorted((file.photo.camera or "", file.photo.date, name) for name, file in files.items() if file.photo.date)
    run: list[str] = []
    for (camera, date, name), (next_camera, next_date, next_name) in pairwise([*dated, ("", "", "")]):
        run.append(name)
        follows = False
        if next_date and camera == next_camera:
            between = datetime.fromisoformat(next_date) - datetime.fromisoformat(date)
            follows = between.total_seconds() <= seconds
        if follows and files[name].hash != files[next_name].hash and name in codes and next_name in codes:
            one, other = (np.frombuffer(codes[each], dtype=np.uint8)[None] for each in (name, next_name))
            follows = bool(_agree(one, other)[0])
        if not follows:
            if len({files[each].hash for each in run}) > 1:
                yield run
            run = []


def _resized(names: Sequence[str], files: Mapping[str, ImageFile], group_of: Mapping[str, int]) -> bool:
    """Whether images are copies in several sizes: these have the time of their original, but are not separate shots."""
    alike = len({group_of.get(name, name) for name in names}) == 1
    return alike and len({(files[name].photo.width, files[name].photo.height) for name in names}) > 1


def _best_first(names: Iterable[str], files: Mapping[str, ImageFile]) -> tuple[str, ...]:
    """IDs by falling number of pixels, then of bytes; of equal ones, the one with a date and the shorter ID first."""

    def key(name: str) -> tuple[int, int, bool, int, str]:
        file = files[name]
        return -file.photo.width * file.photo.height, -file.size, file.photo.date is None, len(name), name

    return tuple(sorted(names, key=key))
