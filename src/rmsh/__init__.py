"""Learned hash codes for images and texts: cross-modal search by Hamming distance.

Importing ``rmsh`` is fast: a public name loads its module on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmsh.builder import build
    from rmsh.codes import Codes
    from rmsh.coding.bounds import choose_delta
    from rmsh.data.open import open_pairs
    from rmsh.data.pairs import Pairs
    from rmsh.index import create_index
    from rmsh.methods import create
    from rmsh.metrics.evaluate import evaluate
    from rmsh.model import Model, load
    from rmsh.search.searcher import Searcher

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

__all__ = [
    "Codes",
    "Model",
    "Pairs",
    "Searcher",
    "__version__",
    "build",
    "choose_delta",
    "create",
    "create_index",
    "evaluate",
    "load",
    "open_pairs",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'rmsh' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
