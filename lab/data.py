"""The data and the folders that all measurements share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmsh import pipeline
from rmsh.compare.provenance import commit
from rmsh.core.errors import DataError
from rmsh.core.files import cache_folder, write_json
from rmsh.data.open import open_pairs
from rmsh.features.extract import encode_pairs

if TYPE_CHECKING:
    from rmsh.data.open import Opened

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "lab" / "results"
RUNS = RESULTS / "runs"
GRIDS = PROJECT / "lab" / "grids"


def write_measurement(name: str, result: Mapping[str, Any]) -> None:
    """Write a result such as "speed/search" with the commit that made it."""
    write_json(RESULTS / f"{name}.json", {"commit": commit(), **result})


def coco66k(text: str) -> Opened:
    """coco66k with features for its captions."""
    opened = open_pairs(coco66k_place())
    encoders = pipeline.prepare_encoders(opened.pairs, {"text": text}, rows=pipeline.training_rows(opened))
    return replace(opened, pairs=encode_pairs(opened.pairs, encoders, cache=cache_folder()))


def coco66k_place() -> str:
    """coco66k as ``open_pairs`` reads it."""
    return f"coco66k:{coco66k_root()}"


def coco66k_root() -> str:
    """The folder of coco66k.

    Raises:
        DataError: there is no such folder.
    """
    root = os.environ.get("RMSH_COCO66K") or str(PROJECT.parent / "shared" / "data" / "coco66k")
    if not Path(root).is_dir():
        raise DataError(f"There is no folder {root}; set RMSH_COCO66K to the folder of coco66k.")
    return root
