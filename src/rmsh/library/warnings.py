"""Warnings about damaged items, in the log of the program, each once for as long as a library is open."""

from __future__ import annotations

import logging
from collections.abc import Iterable

__all__ = ["Warnings"]

_log = logging.getLogger("rmsh.library")


class Warnings:
    """Logs each sentence once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def about(self, sentences: Iterable[str]) -> None:
        """Log the sentences that are new, and that the items they name are left out of results."""
        for sentence in sentences:
            if sentence not in self._known:
                self._known.add(sentence)
                _log.warning("%s Until then, results do not include it.", sentence)
