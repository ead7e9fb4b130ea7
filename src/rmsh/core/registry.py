"""Registries of methods, encoders and indexes: names that are imported only when they are used.

Built-in entries are written as ``module:attribute``, so that listing names imports nothing. Other packages add entries
through the entry-point group of the registry.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from rmsh.core.errors import ConfigError


class Registry:
    """A table of named, lazily imported objects.

    ``kind`` is that of its entries, for error messages ("method"); ``group`` is the entry-point group that other
    packages extend; ``builtin`` maps names to "module:attribute".

    Example:
        >>> Registry("function", "none.functions", {"root": "math:sqrt"}).load("root")(9)
        3.0
    """

    def __init__(self, kind: str, group: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self._builtin = dict(builtin)
        self.added: dict[str, str] = {}

    def add(self, name: str, place: str) -> None:
        """Add an entry, "module:attribute", to this process; a package that is installed uses an entry point."""
        self._builtin[name] = self.added[name] = place

    def names(self) -> list[str]:
        """All known names, sorted."""
        return sorted({*self._builtin, *(point.name for point in entry_points(group=self.group))})

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def load(self, name: str) -> Any:
        """Import the object with this name; other packages cannot replace a built-in name."""
        if name in self._builtin:
            module, _, attribute = self._builtin[name].partition(":")
            return getattr(importlib.import_module(module), attribute)
        for point in entry_points(group=self.group, name=name):
            try:
                return point.load()
            except Exception as error:  # other packages may raise anything
                if isinstance(error, ImportError) and error.name == "torch":
                    raise
                package = point.dist.name if point.dist else point.value
                reason = f"The {self.kind} {name!r} of the package {package} cannot be loaded ({error!r})"
                raise ConfigError(f"{reason}; update or uninstall that package.") from error
        near = difflib.get_close_matches(name, self.names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(self.names())}."
        raise ConfigError(f"There is no {self.kind} called {name!r}; {hint}")
