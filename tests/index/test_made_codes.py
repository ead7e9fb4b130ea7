"""Codes to measure with: their length, their noise, and that queries and database are of one kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes, hamming
from rmsh.codes_file import CodesFile
from rmsh.errors import CodesError, ConfigError, InputError
from rmsh.index.made_codes import clustered, enlarged, from_file, made, uniform


@pytest.mark.parametrize("bits", [1, 7, 64, 130])
def test_uniform_codes_have_fair_bits_and_no_padding(bits: int) -> None:
    codes = uniform(2000, bits)
    assert codes.bits == bits
    assert np.unpackbits(codes.packed).mean() * codes.packed.shape[1] * 8 / bits == pytest.approx(0.5, abs=0.05)


def test_clustered_codes_of_two_seeds_share_their_centres() -> None:
    nearest = hamming(clustered(50, 64, seed=1).packed, clustered(20_000, 64).packed).min(axis=1)
    assert nearest.max() < 15  # strangers of 64 bits differ in about 32, the nearest of 20,000 in more than 10


def test_enlarging_flips_its_share_of_the_bits() -> None:
    one = Codes(np.zeros((1, 16), dtype=np.uint8), 128, np.array(["a"]))
    flipped = np.bitwise_count(enlarged(one, 3000, share=0.1).packed).sum(axis=1)
    assert flipped.mean() == pytest.approx(12.8, abs=0.5)


def test_codes_of_a_file_are_made_more(tmp_path: Path) -> None:
    CodesFile(ids=np.array(["a", "b"]), bits=16, text=uniform(2, 16).packed).save(tmp_path / "codes.npz")
    assert from_file(tmp_path / "codes.npz")(30, 0).packed.shape == (30, 2)


def test_other_kinds_and_lengths_and_nothing_to_start_from_are_refused() -> None:
    with pytest.raises(ConfigError, match="'tidy' were asked for; give clustered or uniform"):
        made("tidy", 64)
    with pytest.raises(CodesError, match="513 bits"):
        made("uniform", 513)
    with pytest.raises(InputError, match="No codes were given to make more of"):
        enlarged(uniform(0, 8), 5)
