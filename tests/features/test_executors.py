"""Executors: results, lost workers, failures and names; the work is a function of the standard library or of rmsh."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from rmsh import __version__
from rmsh.core.errors import CodesError, ConfigError, MissingExtraError, RmshError
from rmsh.features.executors import Processes, answer, open_executor, run

CHECK = "builtins:bool"


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    executor = Processes(2)
    yield executor
    executor.close()


def _request(work: str, task: object, version: str = __version__) -> str:
    return json.dumps({"rmsh": version, "work": work, "task": task})


def test_an_answer_is_a_result_an_error_or_a_reason_to_try_again() -> None:
    assert json.loads(answer(_request("builtins:len", [1, 2]))) == {"result": 2}
    assert "0 bits" in json.loads(answer(_request("rmsh.codes:check_bits", 0)))["error"]
    assert "/missing" in json.loads(answer(_request("os:listdir", "/missing")))["retry"]
    assert "TypeError" in json.loads(answer(_request("builtins:len", 1)))["error"]


def test_a_worker_with_another_version_refuses() -> None:
    assert "rmsh 0.0.9 here" in json.loads(answer(_request("builtins:len", [], "0.0.9")))["error"].replace(
        "and ", "rmsh "
    )


def test_every_task_is_done_in_another_process_with_one_thread(processes: Processes) -> None:
    tasks = {str(n): [n] for n in range(9)}
    assert dict(run(processes, "builtins:sum", tasks, check=CHECK)) == {str(n): n for n in range(9)}
    code = {"one": f"import os; assert os.environ['RMSH_THREADS'] == '1' and os.getpid() != {os.getpid()}"}
    assert dict(run(processes, "builtins:exec", code, check=CHECK)) == {"one": None}


def test_without_an_executor_work_is_done_here_and_errors_are_raised() -> None:
    done = run(None, "rmsh.codes:check_bits", {"a": 8, "b": 0}, check=CHECK)
    assert next(done) == ("a", 8)
    with pytest.raises(CodesError, match="0 bits"):
        next(done)


def test_a_task_whose_process_was_killed_is_repeated_and_reported_once(
    processes: Processes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    once = f"import os, pathlib\nif not (p := pathlib.Path({str(tmp_path / 'x')!r})).exists(): p.touch(); os._exit(3)"
    with caplog.at_level(logging.WARNING):
        done = dict(run(processes, "builtins:exec", {"doomed": once}, check=CHECK))
    assert done == {"doomed": None}
    (record,) = caplog.records
    assert "doomed is repeated" in record.getMessage()


def test_a_task_that_always_loses_its_worker_fails(processes: Processes) -> None:
    with pytest.raises(RmshError, match=r"1 of 1 shards failed.*a: lost 4 times"):
        list(run(processes, "os:_exit", {"a": 3}, check=CHECK))
    assert dict(run(processes, "builtins:len", {"b": [1]}, check=CHECK)) == {"b": 1}


def test_only_the_task_that_loses_its_worker_is_repeated(processes: Processes, tmp_path: Path) -> None:
    count = "import pathlib, time; pathlib.Path({!r}).open('a').write('x'); time.sleep(1)"
    tasks = {name: count.format(str(tmp_path / name)) for name in ("a", "b")} | {"lost": "import os; os._exit(3)"}
    with pytest.raises(RmshError, match=r"1 of 3 shards failed; .*lost: lost 4 times"):
        list(run(processes, "builtins:exec", tasks, check=CHECK))
    assert [(tmp_path / name).read_text() for name in ("a", "b")] == ["x", "x"]


def test_a_failed_task_is_named_and_the_others_are_done(processes: Processes) -> None:
    done = run(processes, "rmsh.codes:check_bits", {"a": 8, "b": 0, "c": 16}, check=CHECK)
    found = [next(done), next(done)]
    assert sorted(found) == [("a", 8), ("c", 16)]
    with pytest.raises(RmshError, match=r"1 of 3 shards failed; .*b: .*0 bits"):
        next(done)


def test_after_ten_failures_no_further_task_is_started(processes: Processes) -> None:
    with pytest.raises(RmshError, match=r"of 40 shards failed, and \d+ were not started"):
        list(run(processes, "rmsh.codes:check_bits", {str(n): 0 for n in range(40)}, check=CHECK))


class _TwoMachines(Processes):
    """The second machine has another version."""

    def probe(self, request: str) -> dict[str, Future[str]]:
        other = json.dumps(json.loads(request) | {"rmsh": "0.0.9"})
        return {"one": self.submit(request), "two": self.submit(other)}


def test_a_machine_that_cannot_take_part_is_named_before_any_work(tmp_path: Path) -> None:
    executor = _TwoMachines(1)
    with pytest.raises(RmshError, match=r"machine two cannot take part: .*0\.0\.9"):
        list(run(executor, "os:mkdir", {"a": str(tmp_path / "made")}, check=CHECK))
    executor.close()
    assert not (tmp_path / "made").exists()


_DRIVER = """
from rmsh.features.executors import Processes, run
if __name__ == "__main__":
    tasks = {"a": "import os, sys, time; print(os.getpid(), flush=True); time.sleep(600)"}
    list(run(Processes(1), "builtins:exec", tasks, check="builtins:bool"))
"""


def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(_DRIVER)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        worker = int(driver.stdout.readline())
        driver.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{worker}").exists()


@pytest.mark.parametrize(("name", "slots"), [("processes:3", 3), ("processes:1", 1)])
def test_an_executor_has_a_name(name: str, slots: int) -> None:
    with open_executor(name) as executor:
        assert executor is not None
        assert executor.slots == slots


@pytest.mark.parametrize("name", ["process", "processes:x", "processes:-1", "ray:2", ""])
def test_an_unknown_executor_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"processes, processes:N or ray"), open_executor(name):
        pass


def test_only_ray_has_an_address() -> None:
    with pytest.raises(ConfigError, match=r"--address is h:1"), open_executor("processes", "h:1"):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[ray\]"), open_executor("ray"):
        pass
