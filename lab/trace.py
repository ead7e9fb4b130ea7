"""Which of our modules take part in a search over HTTP, in an RMSH training step and in a build, in order of first use.

A module counts if one of its functions is executed. Everything runs once before it is recorded, so that imports and
first-time initialisation do not count.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from types import FrameType
from typing import Any
from urllib.request import urlopen

from lab.data import write_measurement
from lab.scenes import write_scenes
from rmsh.cli.main import run
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import create
from rmsh.search import Searcher
from rmsh.serve.server import Listening, serve

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
    recorder.ignored = {thread.ident for thread in threading.enumerate()}  # such as idle workers of the build
    ready: Queue[Listening] = Queue()
    threading.Thread(target=_serve, args=(library, ready.put), daemon=True).start()
    url = ready.get(timeout=60).url

    def search() -> None:
        with urlopen(f"{url}api/search?text=a+red+car", timeout=60) as response:  # noqa: S310
            response.read()
        time.sleep(0.2)  # the server may still be recording metrics of the request

    return recorder.record(search)


def _serve(library: Path, on_ready: Callable[[Listening], None]) -> None:
    with Searcher.open(library, remember=0) as searcher:  # the same text is searched twice
        serve(searcher, name="trace", port=0, on_ready=on_ready)
