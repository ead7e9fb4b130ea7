"""The folder for files that can be recomputed, such as features and unpacked images."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The folder named by ``RMSH_CACHE``, or ``rmsh`` in the user's cache folder."""
    return Path(os.environ.get("RMSH_CACHE") or platformdirs.user_cache_path("rmsh", appauthor=False))
