"""What a build takes: more with more items, and said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmsh.builder.build import estimate
from rmsh.core.errors import RmshError
from rmsh.data.synthetic.generated import generate_pairs


def test_more_items_take_more_time_and_space() -> None:
    few, many = (estimate(generate_pairs(n)) for n in (100, 20_000))
    assert few.seconds < many.seconds
    assert few.bytes < many.bytes
    assert estimate(generate_pairs(100), copied_bytes=1 << 30).bytes == few.bytes + (1 << 30)


def test_it_is_a_sentence() -> None:
    assert str(estimate(generate_pairs(1000))).startswith("1,000 items with 1,000 images and 1,000 texts: ")


def test_a_disk_without_space_is_refused(tmp_path: Path) -> None:
    estimate(generate_pairs(10)).check_space(tmp_path)
    with pytest.raises(RmshError, match="MB are needed"):
        estimate(generate_pairs(10), copied_bytes=1 << 60).check_space(tmp_path)
