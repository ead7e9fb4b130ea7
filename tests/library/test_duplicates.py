"""Duplicates: groups worked out by hand, brute force as the oracle of pairs, and real image files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsh.features.photo import Photo
from rmsh.library.duplicates import LIKELY, SURE, Group, find_groups, similar_pairs
from rmsh.library.photos import ImageFile

NEAR, FAR = bytes(8), bytes([0xFF] * 8)


def _file(look: bytes = NEAR, *, content: str, pixels: int = 100, size: int = 10, **facts: object) -> ImageFile:
    return ImageFile(size, 0, content, replace(Photo(pixels, 1, look), **facts))


def _differing(bits: int) -> bytes:
    return ((1 << bits) - 1).to_bytes(8, "little")


def test_files_with_the_same_content_are_copies() -> None:
    files = {name: _file(FAR, content="x") for name in ("b/long name", "a", "c")}
    assert find_groups(files | {"other": _file(content="y")}, {}) == [Group("copies", ("a", "c", "b/long name"))]


def test_the_same_image_in_two_sizes_is_similar_and_the_larger_is_first() -> None:
    files = {
        "small": _file(_differing(SURE), content="a", pixels=50),
        "large": _file(content="b", pixels=200),
        "packed": _file(content="c", pixels=200, size=5),
        "unlike": _file(_differing(SURE + 21), content="d"),
    }
    assert find_groups(files, {}) == [Group("similar", ("large", "packed", "small"))]


def test_a_copy_of_a_copy_belongs_to_the_same_group() -> None:
    files = {"a": _file(content="1"), "b": _file(content="1"), "c": _file(_differing(3), content="2", pixels=5)}
    assert find_groups(files, {}) == [Group("similar", ("a", "b", "c")), Group("copies", ("a", "b"))]


@pytest.mark.parametrize(
    ("code", "found"), [(bytes([0xFF] * 8 + [0] * 24), True), (bytes([0xFF] * 9 + [0] * 23), False)]
)
def test_somewhat_different_looks_need_codes_that_agree(code: bytes, found: bool) -> None:
    files = {"a": _file(content="1"), "b": _file(_differing(LIKELY), content="2")}
    assert bool(find_groups(files, {"a": bytes(32), "b": code})) is found
    assert not find_groups(files, {"a": bytes(32)})


def test_images_taken_within_seconds_of_each_other_are_a_burst() -> None:
    seconds = {"a": 0, "b": 2, "c": 4, "later": 60}
    files = {
        name: _file(
            bytes([17 * place] * 8),
            content=name,
            date=f"2024-01-01T10:00:{at:02}" if at < 60 else "2024-01-01T11:00:00",
            camera="X",
        )
        for place, (name, at) in enumerate(seconds.items(), start=1)
    }
    files["b of another camera"] = replace(files["b"], hash="z", photo=replace(files["b"].photo, camera="Y", look=FAR))
    codes = {name: bytes(32) for name in files}
    assert Group("burst", ("a", "b", "c")) in find_groups(files, codes)
    assert not [group for group in find_groups(files, codes | {"b": bytes([255] * 32)}) if group.kind == "burst"]
    assert not [group for group in find_groups(files, codes, seconds=1) if group.kind == "burst"]


def test_a_smaller_copy_with_the_time_of_its_original_is_no_burst() -> None:
    dated = {"date": "2024-01-01T10:00:00", "camera": "X"}
    files = {"original": _file(FAR, content="a", **dated), "small": _file(FAR, content="b", pixels=50, **dated)}
    codes = {name: bytes(32) for name in files}
    assert [group.kind for group in find_groups(files, codes)] == ["similar"]


def test_a_library_without_images_has_no_groups() -> None:
    assert find_groups({}, {}) == []
    assert find_groups({"a": _file(content="x")}, {}) == []


@settings(deadline=None)  # the first call compiles
@given(st.integers(0, 2**32 - 1), st.integers(2, 60))
def test_pairs_are_those_of_brute_force(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.integers(0, 256, (4, 8), dtype=np.uint8)
    flips = np.packbits(rng.random((count, 64)) < 0.12, axis=1)
    looks = centre[rng.integers(0, 4, count)] ^ flips
    codes = [
        None if rng.random() < 0.2 else bytes(rng.integers(0, 256, 4, dtype=np.uint8) & 0x1F) for _ in range(count)
    ]
    found = {
        pair for one, other in similar_pairs(looks, codes) for pair in zip(one.tolist(), other.tolist(), strict=True)
    }
    expected = set()
    for i in range(count):
        for j in range(i + 1, count):
            distance = int(np.bitwise_count(looks[i] ^ looks[j]).sum())
            a, b = codes[i], codes[j]
            agree = (
                a is not None
                and b is not None
                and 4 * sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True)) <= 32
            )
            if distance <= SURE or (distance <= LIKELY and agree):
                expected.add((i, j))
    assert found == expected
