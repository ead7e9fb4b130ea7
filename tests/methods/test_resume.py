"""RMSH killed by SIGKILL at random steps, three times in one run, ends with the weights of an undisturbed run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rmsh.model import load

# Learns 6 epochs of 6 steps; at the step given as the second argument it kills itself, as a power cut would.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from rmsh import open_pairs, pipeline
from rmsh.methods import create
from rmsh.methods.rmsh import Objective

out, fatal = Path(sys.argv[1]), int(sys.argv[2])
step, forward = 0, Objective.forward

def counted(self, batch):
    global step
    step += 1
    if step == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    return forward(self, batch)

Objective.forward = counted
method = create("rmsh", bits=16, epochs=6, batch=32, hidden=16, code_update="epoch")
pipeline.learn(method, open_pairs("generated:240"), out=out)
"""
STEPS = 6 * 6


def _run(out: Path, fatal: int) -> int:
    return subprocess.run([sys.executable, "-c", PROGRAM, str(out), str(fatal)], check=False).returncode


@pytest.mark.slow
def test_a_run_killed_at_three_random_steps_ends_with_identical_weights(tmp_path: Path) -> None:
    assert _run(tmp_path / "whole", 0) == 0
    left = STEPS
    for _ in range(3):
        fatal = random.SystemRandom().randint(1, left)
        assert _run(tmp_path / "killed", fatal) == -signal.SIGKILL
        left -= (fatal - 1) // 6 * 6  # finished epochs are not repeated
    assert _run(tmp_path / "killed", 0) == 0
    whole, killed = (tmp_path / name / "model.safetensors" for name in ("whole", "killed"))
    assert whole.read_bytes() == killed.read_bytes()
    assert load(tmp_path / "whole").facts == load(tmp_path / "killed").facts
