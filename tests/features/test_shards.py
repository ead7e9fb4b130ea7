"""Encoding in shards: resumed, shared by processes, and unharmed when one of them is killed."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rmsh.core.locks import try_lock
from rmsh.core.progress import Progress
from rmsh.features import extract
from rmsh.features.extract import encode_items, file_name

WORKER = Path(__file__).with_name("shard_worker.py")
spec = importlib.util.spec_from_file_location("shard_worker", WORKER)
assert spec is not None
assert spec.loader is not None
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)


def _encoded_words(folder: Path) -> list[str]:
    return [line.split()[1] for line in (folder / "log.txt").read_text().splitlines()]


def _wanted(n: int) -> np.ndarray:
    lengths = np.arange(1, n + 1)
    return np.where(lengths % 2 == 0, lengths, 0)


def test_the_shards_become_one_memory_mapped_file_and_are_removed(tmp_path: Path) -> None:
    reports: list[Progress] = []
    found = encode_items(worker.Lengths(), worker.words(10), cache=tmp_path, shard=4, on_progress=reports.append)
    assert isinstance(found.features, np.memmap)
    assert found.features.dtype == np.float32
    np.testing.assert_array_equal(found.features[:, 0], _wanted(10))
    assert [(one.row, one.reason) for one in found.unreadable][:2] == [(0, "e is odd"), (2, "eee is odd")]
    assert len(found.unreadable) == 5
    name = Path(file_name(worker.Lengths(), worker.words(10)))
    assert {file.name for file in tmp_path.iterdir()} == {str(name), f"{name.stem}.unreadable.json"}


def test_existing_features_are_not_encoded_again(tmp_path: Path) -> None:
    encoder = worker.Lengths(tmp_path / "log.txt")
    first, second = (encode_items(encoder, worker.words(6), cache=tmp_path, shard=4) for _ in range(2))
    assert len(_encoded_words(tmp_path)) == 6
    assert first.unreadable == second.unreadable
    np.testing.assert_array_equal(first.features, second.features)


def test_rows_that_are_absent_are_zero_and_not_encoded(tmp_path: Path) -> None:
    encoder = worker.Lengths(tmp_path / "log.txt")
    items = [None if row in (2, 3) else word for row, word in enumerate(worker.words(6))]
    found = encode_items(encoder, items, cache=tmp_path, shard=4)
    assert found.features[:, 0].tolist() == [0, 2, 0, 0, 0, 6]
    assert [one.row for one in found.unreadable] == [0, 4]
    assert _encoded_words(tmp_path) == ["e", "ee", "eeeee", "eeeeee"]


def test_no_items_become_an_empty_file(tmp_path: Path) -> None:
    assert encode_items(worker.Lengths(), [], cache=tmp_path).features.shape == (0, 2)


def test_a_stopped_extraction_loses_one_shard(tmp_path: Path) -> None:
    class Stopping(worker.Lengths):  # type: ignore[name-defined,misc]
        def encode_readable(self, items: Any, **options: Any) -> Any:
            if "e" * 10 in items:
                raise KeyboardInterrupt
            return super().encode_readable(items, **options)

    log = tmp_path / "log.txt"
    with pytest.raises(KeyboardInterrupt):
        encode_items(Stopping(log), worker.words(12), cache=tmp_path, shard=4)
    found = encode_items(worker.Lengths(log), worker.words(12), cache=tmp_path, shard=4)
    np.testing.assert_array_equal(found.features[:, 0], _wanted(12))
    assert max(Counter(_encoded_words(tmp_path)).values()) == 1


def test_a_process_waits_for_another_that_encodes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, pauses = worker.Lengths(tmp_path / "log.txt"), []
    path = tmp_path / file_name(encoder, worker.words(8))
    held = try_lock(path.with_suffix(".shards") / "extraction.claim")
    held.__enter__()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        held.__exit__(None, None, None)  # the other one ends without having written anything

    monkeypatch.setattr(extract, "time", SimpleNamespace(sleep=pause, perf_counter=time.perf_counter))
    encode_items(encoder, worker.words(8), cache=tmp_path, shard=4)
    assert len(pauses) == 1
    assert [len(word) for word in _encoded_words(tmp_path)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_only_the_shard_of_a_killed_process_is_encoded_again(tmp_path: Path) -> None:
    command = [sys.executable, str(WORKER), str(tmp_path), "40", "e" * 6]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "holding\n"  # in the middle of the second shard
        doomed.send_signal(signal.SIGKILL)
    found = encode_items(worker.Lengths(tmp_path / "log.txt"), worker.words(40), cache=tmp_path, shard=4)
    np.testing.assert_array_equal(found.features[:, 0], _wanted(40))
    counts = Counter(_encoded_words(tmp_path))
    assert sorted(len(word) for word, count in counts.items() if count > 1) == [5, 6, 7, 8]
    assert len({line.split()[0] for line in (tmp_path / "log.txt").read_text().splitlines()}) == 2


def test_of_processes_that_start_together_one_encodes(tmp_path: Path) -> None:
    command = [sys.executable, str(WORKER), str(tmp_path), "200", ""]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    (path,) = tmp_path.glob("*.npy")
    np.testing.assert_array_equal(np.load(path)[:, 0], _wanted(200))
    assert max(Counter(_encoded_words(tmp_path)).values()) == 1
    assert not path.with_suffix(".shards").exists()
