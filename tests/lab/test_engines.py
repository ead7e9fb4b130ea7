"""Search engines side by side: they agree, and the measurement notices a wrong answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.__main__ import main
from lab.speed import engines
from lab.speed.engines import ENGINES, Engine, clustered, enlarge, generate, measure, read_words, to_codes, uniform
from rmsh.codes import Codes, hamming
from rmsh.codes_file import CodesFile
from rmsh.core.errors import CodesError, ConfigError, InputError, RmshError
from rmsh.core.types import IntArray

WORDS = clustered(400, 48)
QUERIES = to_codes(clustered(5, 48, seed=1), 48)


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_ROUNDS", 1)
    monkeypatch.setattr(engines, "_LEAST_SECONDS", 0.001)


@pytest.mark.parametrize("bits", [1, 7, 64, 130])
def test_uniform_codes_have_fair_bits_and_no_padding(bits: int) -> None:
    ones = np.unpackbits(uniform(2000, bits).view(np.uint8), axis=1, bitorder="little").mean(axis=0)
    assert ones[:bits] == pytest.approx(0.5, abs=0.05)
    assert not ones[bits:].any()
    with pytest.raises(CodesError, match="513"):
        uniform(5, 513)


def test_codes_of_words_have_the_bytes_of_their_bits() -> None:
    assert to_codes(np.array([[0x0102]], np.uint64), 12).packed.tolist() == [[2, 1]]


def test_clustered_codes_of_two_seeds_share_their_centres() -> None:
    nearest = hamming(*(words.view(np.uint8) for words in (clustered(50, 64, seed=1), clustered(20_000, 64)))).min(
        axis=1
    )
    assert nearest.max() < 15  # strangers of 64 bits differ in about 32, the nearest of 20,000 in more than 10


def test_enlarging_flips_the_given_share_of_the_bits() -> None:
    flipped = np.bitwise_count(enlarge(np.zeros((1, 2), np.uint64), 3000, bits=128, share=0.1)).sum(axis=1)
    assert flipped.mean() == pytest.approx(12.8, abs=0.5)


def test_codes_are_read_from_a_file(tmp_path: Path) -> None:
    packed = np.array([[0, 0], [255, 255]], dtype=np.uint8)
    CodesFile(ids=np.array(["a", "b"]), bits=16, image=packed[::-1], text=packed).save(tmp_path / "codes.npz")
    words, bits = read_words(tmp_path / "codes.npz")
    assert (bits, words[:, 0].tolist()) == (16, [0xFFFF, 0, 0, 0xFFFF])
    more = enlarge(words, 300, bits=bits)
    assert more.shape == (300, 1)
    assert set(np.bitwise_count(more[:, 0]).tolist()) < {0, 1, 2, 3, 13, 14, 15, 16}


def test_an_unknown_kind_and_no_codes_are_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        enlarge(np.empty((0, 1), np.uint64), 5, bits=8)
    with pytest.raises(ConfigError, match=r"'tidy'.*clustered or uniform"):
        generate("tidy", 5, 64)


@pytest.mark.parametrize("name", ["faiss", "usearch"])
def test_every_engine_finds_what_the_scan_finds(name: str) -> None:
    pytest.importorskip(name)
    found = ENGINES[name](WORDS, 48, 1).search(QUERIES, 7)
    assert found is not None
    np.testing.assert_array_equal(found, ENGINES["scan"](WORDS, 48, 1).search(QUERIES, 7))


def test_faiss_searches_at_its_faster_simd_level(monkeypatch: pytest.MonkeyPatch) -> None:
    faiss = pytest.importorskip("faiss")
    engine = ENGINES["faiss"](WORDS, 48, 1)
    monkeypatch.setattr(engine, "levels", [1, 0])
    monkeypatch.setattr(engine, "_seconds", lambda queries, k, level: [1.0, 2.0][level])
    engine.search(QUERIES, 3)
    assert engine.note == "SIMD level NONE"
    assert faiss.SIMDConfig.get_level() == 0


def test_reading_memory_returns_no_distances() -> None:
    assert ENGINES["memory"](WORDS, 48, 2).search(QUERIES, 3) is None


def test_other_libraries_are_listed_only_if_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert engines.installed() == ["memory", "scan"]


def test_every_engine_is_measured_for_every_batch() -> None:
    measured = measure(clustered(500, 64), clustered(8, 64, seed=1), bits=64, batches=(1, 4), k=5)
    assert [(m.engine, m.batch) for m in measured] == [
        (engine, batch) for batch in (1, 4) for engine in ("memory", "scan")
    ]
    assert all(m.queries_per_second > 0 for m in measured)


class _Wrong(Engine):
    def search(self, queries: Codes, k: int) -> IntArray:
        return np.zeros((len(queries), k), dtype=np.int64)


def test_engines_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**ENGINES, "wrong": lambda *_: _Wrong()}
    monkeypatch.setattr(engines, "ENGINES", wrong)
    with pytest.raises(RmshError, match="wrong and scan"):
        measure(clustered(500, 64), clustered(8, 64, seed=1), bits=64, engines=("scan", "wrong"), batches=(1,), k=5)


def test_unknown_engines_and_too_large_batches_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"fast.*memory, scan, faiss, usearch"):
        measure(clustered(9, 8), clustered(2, 8), bits=8, engines=("fast",))
    with pytest.raises(ConfigError, match=r"32.*1 to 2 queries"):
        measure(clustered(9, 8), clustered(2, 8), bits=8, batches=(32,))


def test_the_command_prints_a_row_for_each_engine_and_batch(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "engines",
        "--items",
        "2000",
        "--kind",
        "uniform",
        "--batch",
        "1",
        "--engine",
        "memory",
        "--engine",
        "scan",
    ]
    assert main(words) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [["memory", "1"], ["scan", "1"]]
