"""The demonstration of `make demo`: draw scenes, build a library of them, search it and serve it.

Its files stay in the cache folder, so that the second run serves at once. With ``SERVE=0`` in the environment, or
without a terminal, it ends after the searches.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

SCENES = 3000
_LIKE = "000/000002.jpg"  # a single guitar


def main() -> None:
    """Run the commands that a user would type, and print them."""
    from rmsh.core.files import cache_folder

    sys.exit(demonstrate(cache_folder() / "demo", serve=_is_interactive(), scenes=SCENES))


def _is_interactive() -> bool:
    return os.environ.get("SERVE") != "0" and sys.stdin is not None and sys.stdin.isatty()


def demonstrate(folder: Path, *, serve: bool, scenes: int) -> int:
    """Draw, build, search and optionally serve; returns the exit code of the first command that fails, or 0."""
    from lab.scenes import write_scenes
    from rmsh.cli.console import Console
    from rmsh.cli.main import run
    from rmsh.core.errors import RmshError

    console = Console()
    console.note(f"Drawing {scenes:,} scenes of icons with captions into {folder / 'scenes'}.")
    try:
        with console.progress() as report:
            if not (folder / "scenes" / "manifest.json").is_file():
                shutil.rmtree(folder / "scenes", ignore_errors=True)  # an earlier run was interrupted
            write_scenes(folder / "scenes", scenes, on_progress=report)
    except RmshError as error:
        console.note(f"rmsh: {error}")
        return error.exit_code
    commands = [
        ["build", "scenes", "--out", "library", "--overwrite"],
        ["search", "library", "a puppy next to a bike", "-k", "4"],
        ["search", "library", "stormy weather over the mountains", "-k", "4"],
        ["search", "library", "--like", _LIKE, "--to", "texts", "-k", "4"],
        *([["serve", "library"]] if serve else []),
    ]
    for words in commands:
        console.note(f"\n$ rmsh {' '.join(f'{word!r}' if ' ' in word else word for word in words)}")
        code = run([str(folder / word) if word in ("scenes", "library") else word for word in words])
        if code:
            return code
    if not serve:
        console.note(f"\nTo see it in a browser: {Path(sys.executable).with_name('rmsh')} serve {folder / 'library'}")
    return 0


if __name__ == "__main__":
    main()
