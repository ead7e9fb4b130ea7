"""A push into a server that is killed in the middle and started again: nothing is lost, nothing is written twice."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lab.speed.milvus_load import server_tool

pytestmark = pytest.mark.milvus

_LOAD = """
import json
from lab.speed.milvus_load import measure, server_tool
tool = server_tool()
tool.SERVER["COMMON_SESSION_TTL"] = "10"
tool.raise_loopback()
print(json.dumps(measure(800, 8, tool)))
"""


def test_a_push_goes_on_when_the_server_is_back(milvus_server: str) -> None:
    tool = server_tool()
    if not (tool.VENV / "bin").exists():
        pytest.skip(f"{milvus_server} is the server of someone else, which is not killed")
    words = [*tool.namespace(), sys.executable, "-c", _LOAD]  # a server of its own, beside that of the other tests
    done = subprocess.run(words, capture_output=True, text=True, cwd=tool.PROJECT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["count"], found["codes_equal"], found["distances_equal"]) == (800, True, True)
    assert (found["written_again"], found["removed_again"]) == (0, 0)
    assert "Trying again for 10 minutes" in done.stderr
