"""The Milvus server for tests: when it starts, that it is isolated from the network, and that it always stops."""

from __future__ import annotations

import importlib.util
import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "milvus_server.py"
FAKE = """
import os, subprocess, sys, time

class MilvusServerConfig:
    pass

def main():
    folder, port = (sys.argv[sys.argv.index(word) + 1] for word in ("--data", "--proxy-port"))
    MilvusServerConfig().try_bind_port(int(port)).close()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(os.path.join(folder, "pids"), "w").write(f"{os.getpid()} {child.pid}")
    print(os.environ.get("FAKE_SAYS", "Ctrl+C to exit ..."))
    time.sleep(600)
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """tools/milvus_server.py with a server that only says what the real one says, and has a child as that has."""
    spec = importlib.util.spec_from_file_location("rmsh_milvus_server", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "bin" / "milvus-server").touch()
    (tmp_path / "milvus.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(module, "VENV", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(module, "PORT", server.getsockname()[1])
    return module


def _ended(process: int, *, within: float) -> bool:
    return bool(select.select([process], [], [], within)[0])


linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces and /proc are those of Linux")


@linux
def test_whatever_ends_the_block_ends_the_server_and_its_children(tool: ModuleType, tmp_path: Path) -> None:
    block = tool.running(tmp_path, None)
    block.__enter__()
    pids = (tmp_path / "pids").read_text().split()
    processes = [os.pidfd_open(int(pid)) for pid in pids]  # readable once a process has ended
    assert not any(_ended(process, within=0) for process in processes)
    with pytest.raises(KeyboardInterrupt):
        block.gen.throw(KeyboardInterrupt)
    assert all(_ended(process, within=0) for process in processes)  # so their ports are free


@linux
def test_a_port_of_former_connections_is_used_again_and_one_in_use_is_an_error(
    tool: ModuleType, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", tool.PORT)) as server:
        with pytest.raises(tool.ServerError, match="did not start"):
            tool.running(tmp_path, None).__enter__()
        client = socket.create_connection(("127.0.0.1", tool.PORT))
        server.accept()[0].close()  # this side closes first, so the connection keeps the port for a minute
        client.close()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", tool.PORT))
    with tool.running(tmp_path, None):
        pass


@linux
def test_a_server_that_does_not_start_shows_its_log(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "milvus-stderr.log").write_text("no space left")
    monkeypatch.setenv("FAKE_SAYS", "Wait for milvus server started timeout.")
    with pytest.raises(tool.ServerError, match="no space left"):
        tool.running(tmp_path, None).__enter__()


@linux
def test_a_server_that_ends_during_the_tests_shows_its_log(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "raise_loopback", lambda: None)
    monkeypatch.setattr(tool, "HEALTH", "http://127.0.0.1:1/healthz")  # nobody is there
    assert tool.main([tool.INSIDE, "-c", "raise SystemExit(0)"]) == 0
    assert tool.main([tool.INSIDE, "-c", "raise SystemExit(5)"]) == 1
    assert "the server exited" in capsys.readouterr().err


def test_a_server_of_ones_own_is_used_as_it_is(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILVUS_URI", "http://127.0.0.1:1")
    monkeypatch.setattr(tool, "namespace", pytest.fail)
    assert tool.main(["-c", "import os, sys; sys.exit(7 * (os.environ['MILVUS_URI'] == 'http://127.0.0.1:1'))"]) == 7


def test_without_a_namespace_no_server_is_started(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MILVUS_URI", raising=False)
    monkeypatch.setattr(tool.shutil, "which", lambda _name: None)
    assert tool.main(["-c", "raise SystemExit(0)"]) == 1
    assert "`unshare --net` is not permitted" in (capsys.readouterr().err)


def test_tests_follow_in_a_namespace_in_the_place_of_the_tool(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MILVUS_URI", raising=False)
    monkeypatch.setattr(tool, "namespace", lambda: ["unshare", "--net"])
    became: list[Any] = []
    monkeypatch.setattr(os, "execvp", lambda *words: became.append(words))
    tool.main(["-m", "pytest"])
    ((program, words),) = became
    assert (program, words[:3], words[-3:]) == (
        "unshare",
        ["unshare", "--net", sys.executable],
        ["--inside", "-m", "pytest"],
    )


def test_the_package_is_installed_once_and_its_size_is_said_before(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(
        tool.subprocess, "run", lambda words: ran.append(words) or subprocess.CompletedProcess(words, 3)
    )
    tool.install()
    assert ran == []
    monkeypatch.setattr(tool, "VENV", tmp_path / "absent")
    with pytest.raises(tool.ServerError, match="MILVUS_URI"):
        tool.install()
    assert "60 MB to download" in capsys.readouterr().out


def test_with_a_certificate_both_sides_speak_tls(tool: ModuleType) -> None:
    certificate = Path("folder/certificate.pem")
    assert tool.client(certificate)["MILVUS_URI"].startswith("https://127.0.0.1:")
    assert tool.tls_of_server(certificate)["TLS_SERVERKEYPATH"] == str(Path("folder/key.pem"))
    assert tool.client(None)["MILVUS_URI"].startswith("http://127.0.0.1:")
    assert tool.tls_of_server(None) == {}
