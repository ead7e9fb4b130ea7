"""Search speed: random codes, and a measurement of the scan."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.core.errors import CodesError, ConfigError
from rmsh.index import speed
from rmsh.index.speed import measure, to_codes, uniform


@pytest.mark.parametrize("bits", [1, 7, 64, 130])
def test_uniform_codes_have_fair_bits_and_no_padding(bits: int) -> None:
    ones = np.unpackbits(uniform(2000, bits).view(np.uint8), axis=1, bitorder="little").mean(axis=0)
    assert ones[:bits] == pytest.approx(0.5, abs=0.05)
    assert not ones[bits:].any()


def test_codes_of_words_have_the_bytes_of_their_bits() -> None:
    assert to_codes(np.array([[0x0102]], np.uint64), 12).packed.tolist() == [[2, 1]]


def test_invalid_lengths_and_too_large_batches_are_refused() -> None:
    with pytest.raises(CodesError, match="513"):
        uniform(5, 513)
    with pytest.raises(ConfigError, match=r"1001.*1 to 1000"):
        measure(9, 8, batches=(1001,))


def test_every_batch_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "_SECONDS", 0.001)
    rates = measure(500, 64, batches=(1, 4), k=5)
    assert list(rates) == [1, 4]
    assert min(rates.values()) > 0
