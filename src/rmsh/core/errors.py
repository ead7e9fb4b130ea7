"""One exception tree: every error a user can cause, and what the command line exits with.

    RmshError
    ├── InputError          what was given is wrong; the message says what to give instead
    │   ├── DataError       a file of data: names the file, the row or key
    │   ├── CodesError      codes that do not fit each other or their length
    │   └── ConfigError     an option or a configuration file
    ├── FormatError         a file of ours that is damaged, unfinished or of a newer version
    ├── MissingExtraError        an optional dependency that is not installed
    └── TrainingError       learning that cannot go on, such as a loss that is not a number

A message is one sentence or two: the value received, what is allowed, what to do.
"""

from __future__ import annotations

import importlib
from types import ModuleType


class RmshError(Exception):
    """Anything rmsh refuses or cannot do; ``exit_code`` is what a command ends with."""

    exit_code = 2


class InputError(RmshError, ValueError):
    """What was given cannot be used."""


class DataError(InputError):
    """A data file holds something else than its reader expects."""


class CodesError(InputError):
    """Codes are malformed, or belong to another length or another model."""


class ConfigError(InputError):
    """An option is unknown or its value is out of range."""


class FormatError(RmshError):
    """A file written by rmsh is damaged, unfinished or newer than this version."""


class MissingExtraError(RmshError, ImportError):
    """An optional dependency is needed and not installed."""


class TrainingError(RmshError):
    """Learning cannot go on."""

    exit_code = 1


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Example:
        >>> require("math", "none").sqrt(4)
        2.0
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f'{module} is not installed; it comes with: pip install "rmsh[{extra}]"') from error
