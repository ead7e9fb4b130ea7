"""Learned hash codes for pictures and texts: cross-modal search by Hamming distance.

Importing ``rmsh`` is light: its public names load their module when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# public name -> the module that has it
_EXPORTS = {
    "Codes": "rmsh.codes",
    "Pairs": "rmsh.data.pairs",
}

__all__ = ["Codes", "Pairs", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'rmsh' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
