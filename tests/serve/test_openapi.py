"""Schemathesis against a server: whatever is sent, the response is one that /openapi.json describes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
HOOKS = {"PYTHONPATH": str(PROJECT), "SCHEMATHESIS_HOOKS": "tests.serve.valid_requests"}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("schemathesis") is None, reason='needs Schemathesis: pip install "rmsh[dev]"')
def test_every_response_is_as_described(listen: Callable[..., int], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{listen()}/openapi.json"]
    command += ["--checks", "all", "--seed", "0", "--max-examples", "10", "--max-time", "40"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | HOOKS, capture_output=True, text=True, timeout=80)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 200
