"""Where work that can be done again is kept, such as features and unpacked pictures."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder named by ``RMSH_CACHE``, or ``rmsh`` in the user's cache folder."""
    given = os.environ.get("RMSH_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rmsh"
