"""The exception tree: every error that a user can cause.

    RmshError
    ├── InputError           the input cannot be used; the message says what to give instead
    │   ├── DataError        a data file is wrong; the message names the file and the row or key
    │   │   └── ImageLimitError  an image exceeds a limit on pixels, time or memory
    │   ├── CodesError       codes do not match each other or their length
    │   └── ConfigError      an option or a configuration file is wrong
    ├── FormatError          a file written by rmsh is damaged, unfinished or too new
    ├── MissingExtraError    an optional dependency is not installed
    └── TrainingError        training cannot continue, for example because the loss is not finite

A message has three parts: the value received, what is allowed, what to do.
"""

from __future__ import annotations

import importlib
import json
from importlib import metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit


class RmshError(Exception):
    """Base of all errors that rmsh raises on purpose; a command ends with ``exit_code``."""

    exit_code = 2


class InputError(RmshError, ValueError):
    """The input cannot be used."""


class DataError(InputError):
    """The content of a data file is not what its reader expects."""


class ImageLimitError(DataError):
    """An image has too many pixels, or takes too much time or memory to decode."""


class CodesError(InputError):
    """Codes are malformed, or have another length or come from another model."""


class ConfigError(InputError):
    """An option is unknown or its value is out of range."""


class FormatError(RmshError):
    """A file written by rmsh is damaged, unfinished or newer than this version."""


class MissingExtraError(RmshError, ImportError):
    """An optional dependency is required but not installed."""


class TrainingError(RmshError):
    """Training cannot continue."""

    exit_code = 1


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module; if it is missing, the error names the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{module} is not installed; run: {install_command(extra)}") from error


def install_command(extra: str = "") -> str:
    """The command that installs rmsh with an extra from where it came from: an index, a folder, a file or git."""
    from urllib.request import url2pathname  # takes long, and is rarely needed

    suffix, program = f"[{extra}]" if extra else "", "pip"
    try:
        installed = metadata.distribution("rmsh")
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        program = "uv pip" if (installed.read_text("INSTALLER") or "").strip() == "uv" else "pip"
    except metadata.PackageNotFoundError:  # a checkout that is on the path but not installed
        origin = {"url": Path(__file__).parents[3].as_uri(), "dir_info": {"editable": True}}
    what, folder, repository = f"rmsh{suffix}", origin.get("dir_info"), origin.get("vcs_info")
    if folder is not None:
        what = url2pathname(urlsplit(origin["url"]).path) + suffix
    elif origin:
        what += f" @ {origin['url']}" if repository is None else f" @ {repository['vcs']}+{origin['url']}"
    return f'{program} install {"-e " if folder and folder.get("editable") else ""}"{what}"'
