"""The folder a user owns: items, labels and codes in SQLite, a model, and a snapshot of the codes to search at once."""

from rmsh.library.items import Hit, Item
from rmsh.library.library import Library

__all__ = ["Hit", "Item", "Library"]
