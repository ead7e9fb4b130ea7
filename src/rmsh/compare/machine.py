"""What a process uses: its peak memory, what it runs on, and in which versions."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rmsh import __version__

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")


def peak_memory_mb() -> int | None:
    """The most memory this process had in use, in megabytes; None where the system does not say.

    Linux keeps it for each program in /proc. ``getrusage`` would not do there: a child process starts with the peak of
    the one that started it.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def forget_peak_memory() -> None:
    """Start the peak anew from what is in use now, where the system can (Linux); elsewhere it stays."""
    with suppress(OSError):
        _FORGET.write_text("5")  # its number for the peak


def machine() -> dict[str, Any]:
    """What a time was measured on."""
    threads = os.environ.get("OMP_NUM_THREADS")
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": int(threads) if threads and threads.isdecimal() else None,
    }


def versions() -> dict[str, str]:
    """The versions a result depends on; a package that is not installed is left out."""
    found = {"rmsh": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
