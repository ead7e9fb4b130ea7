"""The catalogue: every available method, ours and those of other packages, with its options."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from rmsh.core.errors import ConfigError, MissingExtraError
from rmsh.methods import METHODS, method_class

if TYPE_CHECKING:
    from rmsh.methods.base import Method


@dataclass(frozen=True)
class Option:
    """One field of a method's configuration."""

    name: str
    allowed: str  # its type, or its values
    default: Any
    description: str


@dataclass(frozen=True)
class Entry:
    """One method."""

    name: str
    summary: str
    reference: str
    supervised: bool
    presets: tuple[str, ...]
    options: tuple[Option, ...]


def catalogue() -> tuple[list[Entry], list[str]]:
    """All methods, sorted by name, and one message for each that needs a missing extra or cannot be loaded."""
    entries: list[Entry] = []
    missing: list[str] = []
    for name in METHODS.names():
        try:
            entries.append(describe(name, method_class(name)))
        except (MissingExtraError, ConfigError) as error:  # the latter: a package that cannot be loaded
            missing.append(str(error))
    return entries, missing


def describe(name: str, cls: type[Method]) -> Entry:
    """The entry of a method under the name it is registered by.

    Example:
        >>> entry = describe("cca-itq", method_class("cca-itq"))
        >>> entry.supervised, entry.options[0]
        (False, Option(name='bits', allowed='int', default=64, description='code length'))
    """
    options = tuple(
        Option(field_name, _allowed(field.annotation), field.default, field.description or "")
        for field_name, field in cls.Config.model_fields.items()
    )
    return Entry(name, cls.summary, cls.reference, cls.supervised, tuple(cls.presets), options)


def _allowed(annotation: Any) -> str:
    """A type in words.

    Example:
        >>> _allowed(float | None), _allowed(Literal["a", "b"])
        ('float or none', 'a, b')
    """
    if get_origin(annotation) is Literal:
        return ", ".join(map(str, get_args(annotation)))
    parts = get_args(annotation)
    if parts:
        return " or ".join(_allowed(part) for part in parts)
    return "none" if annotation is NoneType else str(annotation.__name__)
