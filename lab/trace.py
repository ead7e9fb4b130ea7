"""Which of our modules take part in a search over HTTP, in an RMSH training step and in a build, in order of first use.

A module counts if one of its functions is executed. Everything runs once before it is recorded, so that imports and
first-time initialisation do not count.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import itertools
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from lab.data import write_measurement
from lab.scenes import write_scenes
from rmsh.cli.main import run
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import create

LIMITS = {"search": 20, "training step": 8}
_SCENES = 60
_STEP = ("torch.optim.optimizer", "zero_grad")  # called once per training step


class Recorder:
    """Records calls of our functions, and the steps of an optimiser, in all threads started after its creation."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.active = False
        self.ignored: set[int | None] = set()  # threads
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        if self.active and event == "call" and threading.get_ident() not in self.ignored:
            module = str(frame.f_globals.get("__name__", ""))
            call = (module, frame.f_code.co_name)
            if call == _STEP or (module.split(".")[0] == "rmsh" and call[1] != "<module>"):
                self.calls.append(call)

    def record(self, action: Callable[[], object]) -> list[tuple[str, str]]:
        """The calls during an action that has been executed before."""
        action()
        self.calls, self.active = [], True
        try:
            action()
        finally:
            self.active = False
        return self.calls


def main() -> None:
    """Trace all three, write the result and print the modules."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        traces = {
            "training step": _trace_training_step(recorder),
            "build": _trace_build(recorder, Path(folder)),
            "search": _trace_search(recorder, Path(folder) / "library1"),
        }
    found = {
        name: list(dict.fromkeys(module for module, _ in calls if module != _STEP[0])) for name, calls in traces.items()
    }
    write_measurement("trace", {name: {"count": len(modules), "modules": modules} for name, modules in found.items()})
    for name, modules in found.items():
        limit = f" (at most {LIMITS[name]})" if name in LIMITS else ""
        print(f"{name}: {len(modules)} modules{limit}")
        print("".join(f"  {module}\n" for module in modules))


def _trace_training_step(recorder: Recorder) -> list[tuple[str, str]]:
    """The calls from the start of one step of a training to the start of the next."""
    pairs = generate_pairs(200)
    calls = recorder.record(lambda: create("rmsh", bits=16, epochs=1, batch=32).fit(pairs))
    starts = [number for number, call in enumerate(calls) if call == _STEP]
    return calls[starts[1] : starts[2]]


def _trace_build(recorder: Recorder, folder: Path) -> list[tuple[str, str]]:
    """The calls of a build; each build has its own images and library, so that nothing is reused."""
    numbers = itertools.count()

    def build() -> None:
        number = next(numbers)
        recorder.active, active = False, recorder.active
        write_scenes(folder / f"scenes{number}", _SCENES, side=64, seed=number)
        recorder.active = active
        _build(folder / f"scenes{number}", folder / f"library{number}")

    return recorder.record(build)


def _build(data: Path, library: Path) -> None:
    options = ["--bits", "16", "--text-encoder", "bag-of-words", "--set", "epochs=1", "--json", "--quiet"]
    with contextlib.redirect_stdout(io.StringIO()):
        code = run(["build", str(data), "--out", str(library), *options])
    if code:
        sys.exit(code)


def _trace_search(recorder: Recorder, library: Path) -> list[tuple[str, str]]:
    """The calls of a text search, from a server in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    recorder.ignored = {thread.ident for thread in threading.enumerate()}  # such as idle workers of the build
    arguments = ["serve", str(library), "--port", str(port), "--quiet", "--remember", "0"]  # the same text twice
    threading.Thread(target=run, args=(arguments,), daemon=True).start()
    _wait_for(port)
    return recorder.record(lambda: _search(port))


def _wait_for(port: int, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _search(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/search?text=a+red+car")
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        sys.exit(f"The search was answered with status {response.status}: {body[:200]!r}")
    time.sleep(0.2)  # the server may still be recording metrics of the request
