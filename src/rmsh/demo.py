"""The demonstration: learn codes for generated pairs, print their scores beside chance. Run by `make demo`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

__all__ = ["main"]

_STEPS = (
    ("learn", "train", "generated:4000", "--out", "{folder}/model", "--bits", "32", "--set", "epochs=10"),
    ("code", "encode", "{folder}/model", "generated:4000", "--out", "{folder}/codes.npz"),
    ("measure", "evaluate", "{folder}/codes.npz", "--k", "100"),
)


def main() -> None:
    """Run the commands a user would type, and show them."""
    from rmsh.cli.console import Console
    from rmsh.cli.main import run

    console = Console()
    with tempfile.TemporaryDirectory(prefix="rmsh-demo-") as folder:
        for name, *words in _STEPS:
            command = [word.format(folder=folder) for word in words]
            shown = " ".join(word.replace(str(Path(folder)), "demo") for word in command)
            console.note(f"\n{name}: rmsh {shown}")
            code = run(command)
            if code:
                sys.exit(code)


if __name__ == "__main__":
    main()
