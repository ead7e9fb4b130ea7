"""Methods: each learns hash functions from pairs; one file a method, one contract in base.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmsh.errors import MissingExtraError
from rmsh.registry import Registry

if TYPE_CHECKING:
    from rmsh.methods.base import Method

__all__ = ["METHODS", "create"]

METHODS = Registry("method", "rmsh.methods", {"rmsh": "rmsh.methods.rmsh:RMSH"})


def create(name: str, *, preset: str | None = None, **options: Any) -> Method:
    """A method by name, with options; nothing is learned yet.

    Raises:
        ConfigError: the name, the preset or an option is unknown, or a value is out of range.
        MissingExtraError: the method needs torch.
    """
    try:
        cls: type[Method] = METHODS.load(name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(
            f'The method {name!r} learns with torch, which is not installed; run: pip install "rmsh[train]"'
        ) from error
    return cls(preset=preset, **options)
