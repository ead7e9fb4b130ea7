"""Fixtures: where the real data is, when it is there."""

from __future__ import annotations

import os
from pathlib import Path

# Tests are small: a second thread would cost more in waiting than it brings, above all on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest  # after the threads are limited

PROJECT = Path(__file__).resolve().parent.parent
SHARED_DATA = PROJECT.parent / "shared" / "data"


def _folder(name: str) -> Path:
    folder = SHARED_DATA / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not at ../shared/data/{name} beside the project")
    return folder


@pytest.fixture(scope="session")
def coco66k_root() -> Path:
    """The folder of the 61,903 MS COCO pairs."""
    return _folder("coco66k")


@pytest.fixture(scope="session")
def mirflickr_root() -> Path:
    """The folder of the MIRFLICKR-25K label and tag matrices."""
    return _folder("mirflickr25k")
