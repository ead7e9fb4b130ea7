"""Codes to measure with: their length, their noise, and that queries and database are of one kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import hamming
from rmsh.codes_file import CodesFile
from rmsh.core.errors import CodesError, ConfigError, InputError
from rmsh.index.speed import clustered, enlarged, from_file, made, uniform


@pytest.mark.parametrize("bits", [1, 7, 64, 130])
def test_uniform_codes_have_fair_bits_and_no_padding(bits: int) -> None:
    ones = np.unpackbits(uniform(2000, bits).view(np.uint8), axis=1, bitorder="little").mean(axis=0)
    assert ones[:bits] == pytest.approx(0.5, abs=0.05)
    assert not ones[bits:].any()


def test_clustered_codes_of_two_seeds_share_their_centres() -> None:
    nearest = hamming(*(made.view(np.uint8) for made in (clustered(50, 64, seed=1), clustered(20_000, 64)))).min(axis=1)
    assert nearest.max() < 15  # strangers of 64 bits differ in about 32, the nearest of 20,000 in more than 10


def test_enlarging_flips_its_share_of_the_bits() -> None:
    flipped = np.bitwise_count(enlarged(np.zeros((1, 2), np.uint64), 3000, bits=128, share=0.1)).sum(axis=1)
    assert flipped.mean() == pytest.approx(12.8, abs=0.5)


def test_codes_of_a_file_are_made_more(tmp_path: Path) -> None:
    packed = np.array([[0, 0], [255, 255]], dtype=np.uint8)
    CodesFile(ids=np.array(["a", "b"]), bits=16, image=packed[::-1], text=packed).save(tmp_path / "codes.npz")
    make, bits = from_file(tmp_path / "codes.npz")
    made = make(300, 0)
    assert (bits, made.shape) == (16, (300, 1))
    assert set(np.bitwise_count(made[:, 0]).tolist()) < {0, 1, 2, 3, 13, 14, 15, 16}


def test_other_kinds_and_lengths_and_nothing_to_start_from_are_refused() -> None:
    with pytest.raises(ConfigError, match="'tidy' were asked for; give clustered or uniform"):
        made("tidy", 64)
    with pytest.raises(CodesError, match="513 bits"):
        made("uniform", 513)
    with pytest.raises(InputError, match="No codes were given to make more of"):
        enlarged(uniform(0, 8), 5, bits=8)
