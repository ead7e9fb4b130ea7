"""Run the fast tests that need no torch with the lowest and with the newest versions of all dependencies.

Called by `make test-versions`, with another Python by `make test-versions ARGS="--python python3.13"`. The environments
are .venv-lowest and .venv-newest; in each, uv chooses the versions that pyproject.toml allows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
EXTRAS = "encoders,serve,plots,photos,milvus,scenes"
MORE = ("faiss-cpu>=1.9", "usearch>=2.16", "httpx>=0.28")  # httpx: for the test client of an older Starlette
# Lowest: old releases warn about newer releases of what they need, and that is not our concern.
KINDS = {"lowest": ("lowest-direct", ("-W", "default")), "newest": ("highest", ())}
LEFT_OUT = ("tests/browser", "tests/lab", "tests/hub", "tests/ray", "tests/test_tasks.py", "tests/test_site.py")


def main() -> int:
    """Make the environments, run the tests in both, and return the first exit code that is not zero."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", choices=KINDS, help="one of the two environments")
    given, tests = parser.parse_known_args()
    dev = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    tools = [requirement for requirement in dev if not requirement.startswith("rmsh[")]
    codes = []
    for kind in [given.only] if given.only else KINDS:
        resolution, options = KINDS[kind]
        venv = PROJECT / f".venv-{kind}"
        python = str(venv / "bin" / "python")
        install = [python, "-m", "uv", "pip", "install", "-q", "--resolution", resolution, "--python", python]
        steps = (
            [given.python, "-m", "venv", "--clear", str(venv)],
            [python, "-m", "pip", "install", "-q", "uv"],
            [*install, "-e", f".[{EXTRAS}]", *tools, *MORE],
        )
        for step in steps:
            subprocess.run(step, cwd=PROJECT, check=True)
        ignored = [f"--ignore={name}" for name in LEFT_OUT]
        print(f"== {kind} versions, {given.python}", flush=True)
        test = [python, "-m", "pytest", "-q", "-m", "not slow", *options, *ignored, *(tests or ["tests"])]
        codes.append(subprocess.run(test, cwd=PROJECT).returncode)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
