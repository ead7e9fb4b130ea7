"""The data all measurements share: coco66k with its two kinds of text features."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh import pipeline
from rmsh.data.open import open_pairs
from rmsh.features.extract import cache_folder

if TYPE_CHECKING:
    from rmsh.data.open import Opened

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench" / "results"
GRIDS = PROJECT / "experiments"


def coco66k(text: str, *, validation: bool = False) -> Opened:
    """coco66k with features for its captions."""
    opened = open_pairs(f"coco66k:{coco66k_root()}")
    opened = pipeline.for_validation(opened) if validation else opened
    encoders = pipeline.prepare_encoders(opened, {"text": text})
    return replace(opened, pairs=pipeline.encode_raw(opened.pairs, encoders, cache=cache_folder()))


def coco66k_labels() -> Opened:
    """The labels and the split of coco66k alone."""
    return open_pairs(f"coco66k:{coco66k_root()}", skip=("images", "texts"))


def coco66k_root() -> str:
    """Where coco66k is; on a machine without it nothing is measured, and a sentence says so."""
    root = os.environ.get("RMSH_COCO66K") or str(PROJECT.parent / "shared" / "data" / "coco66k")
    if not Path(root).is_dir():
        sys.exit("coco66k is not at ../shared/data/coco66k; set RMSH_COCO66K to its folder. Nothing was measured.")
    return root
