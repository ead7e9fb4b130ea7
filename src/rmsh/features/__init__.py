"""Features: frozen encoders that turn pictures and texts into numbers, and where their weights come from."""

from __future__ import annotations

from rmsh.registry import Registry

__all__ = ["ENCODERS"]

ENCODERS = Registry(
    "encoder",
    "rmsh.encoders",
    {"minilm": "rmsh.features.minilm:MiniLM", "bag-of-words": "rmsh.features.bag_of_words:BagOfWords"},
)
