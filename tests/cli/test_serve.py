"""`rmsh serve`: it listens, prints its address, requires a token beyond loopback, and ends quietly."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from rmsh.cli.main import run

Capture = pytest.CaptureFixture[str]


@contextmanager
def _served(library: Path, *words: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "rmsh", "serve", str(library), "--port", "0", "--json", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline()), process
        finally:
            process.kill()


def _status(url: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:  # noqa: S310
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_a_library_is_served_on_loopback_until_interrupted(colours: Path) -> None:
    with _served(colours, "--allow-host", "localhost", "--access-log") as (told, process):
        assert told["token"] is None
        assert told["url"].startswith("http://127.0.0.1:")
        assert _status(told["url"]) == 200
        assert _status(told["url"] + "api/search?text=red") == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "There is no encoder called 'mean-colour'" in errors  # which only these tests have
    assert "Traceback" not in errors
    assert " 127.0.0.1 GET /api/search 200 " in errors


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_search_processes_end_with_the_server(end: signal.Signals, colours: Path) -> None:
    with _served(colours, "--workers", "1") as (told, process):
        assert _status(told["url"] + "api/search?text=red") == 200
        children = _children(process.pid)
        process.send_signal(end)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == (0 if end == signal.SIGINT else -end)
    assert "Traceback" not in errors
    assert "Process" not in errors
    (worker,) = (child for child, command in children.items() if "spawn_main" in command)
    state = Path("/proc", worker, "stat")
    assert not state.exists() or state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def _children(pid: int) -> dict[str, str]:
    """The commands of the child processes, by process id."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return {child: Path("/proc", child, "cmdline").read_text(encoding="utf-8") for child in children}


def test_the_title_of_the_page_can_be_set(colours: Path) -> None:
    with (
        _served(colours, "--title", "Our <b>photographs") as (told, _),
        urllib.request.urlopen(told["url"] + "api/about") as answer,  # noqa: S310
    ):
        assert json.load(answer)["name"] == "Our <b>photographs"


def test_beyond_loopback_a_token_is_generated_and_required(colours: Path) -> None:
    with _served(colours, "--host", "0.0.0.0") as (told, _):  # noqa: S104
        assert len(told["token"]) >= 32
        assert [_status(told["url"] + path) for path in ("", "healthz", "api/about", "metrics")] == [200, 200, 401, 401]
        assert _status(told["url"] + "metrics", Authorization=f"Bearer {told['token']}") == 200
        assert _status(told["url"], Host="evil.example") == 400


def test_a_name_of_another_machine_needs_a_token_on_loopback_too(colours: Path) -> None:
    with _served(colours, "--allow-host", "photos.example") as (told, process):
        assert len(told["token"]) >= 32
        assert _status(told["url"] + "api/about", Host="photos.example") == 401
        process.kill()
        assert "--trusted-proxy" in process.communicate(timeout=30)[1]


def test_a_port_in_use_is_a_sentence(colours: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["serve", str(colours), "--port", str(taken.getsockname()[1])]) == 2
    told = capsys.readouterr().err
    assert "listen on port" in told
    assert "of 127.0.0.1 (the port is in use); choose another --port or --host." in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--token", "short"], "token has 5 characters"),
        (["--host", "no such host"], "listen on port 8000 of no such host"),
        (["--allow-host", "http://x.org/"], "'http://x.org/'"),
        (["--trusted-proxy", "proxy.example"], "'proxy.example'"),
        (["--model", "m"], "has its own model"),
        (["--images", "p"], "has its own model"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, *, colours: Path, capsys: Capture) -> None:
    assert run(["serve", str(colours), *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_without_a_library_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert run(["serve", str(tmp_path)]) == 2
    assert "has no manifest.json" in capsys.readouterr().err
