"""What a process says of itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from rmsh.compare.machine import forget_peak_memory, machine, peak_memory_mb, versions


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can start the peak anew")
def test_the_peak_is_that_of_the_work_since_it_was_forgotten() -> None:
    np.ones(25_000_000).sum()  # 200 MB
    before = peak_memory_mb()
    forget_peak_memory()
    after = peak_memory_mb()
    assert before is not None
    assert after is not None
    assert before - after > 150


def test_versions_and_machine_are_named() -> None:
    assert {"rmsh", "python", "numpy"} <= versions().keys()
    assert machine()["cores"] >= 1
