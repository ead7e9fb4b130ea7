"""Learned hash codes for images and texts: cross-modal search by Hamming distance.

Importing ``rmsh`` is fast: a public name loads its module on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmsh.builder import build as build
    from rmsh.codes import Codes as Codes
    from rmsh.coding.bounds import choose_delta as choose_delta
    from rmsh.data.open import open_pairs as open_pairs
    from rmsh.data.pairs import Pairs as Pairs
    from rmsh.index import create_index as create_index
    from rmsh.methods import create as create
    from rmsh.metrics.evaluate import evaluate as evaluate
    from rmsh.model import Model as Model
    from rmsh.model import load as load
    from rmsh.search.searcher import Searcher as Searcher

__version__ = "0.1.0"

# public name -> module
_EXPORTS = {
    "Codes": "rmsh.codes",
    "Model": "rmsh.model",
    "Pairs": "rmsh.data.pairs",
    "Searcher": "rmsh.search.searcher",
    "build": "rmsh.builder",
    "choose_delta": "rmsh.coding.bounds",
    "create": "rmsh.methods",
    "create_index": "rmsh.index",
    "evaluate": "rmsh.metrics.evaluate",
    "load": "rmsh.model",
    "open_pairs": "rmsh.data.open",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'rmsh' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
