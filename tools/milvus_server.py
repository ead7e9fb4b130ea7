"""Run Python with a Milvus server available, as in `python tools/milvus_server.py -m pytest -m milvus`.

If MILVUS_URI is set, that server is used. Otherwise the server of the PyPI package `milvus` is installed into
`.venv-milvus` and started with its data in a temporary folder. It listens on every interface, so the server and the
command run in a network namespace with only a loopback device: the server is unreachable from outside, and no port of
the machine is used. It requires a token, which the command receives. Only the standard library is used.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv-milvus"
PACKAGE = "milvus==2.3.5"
SIZE = "the Milvus server: about 60 MB to download, 80 MB on disk, and 0.5 GB in a temporary folder while it runs"

PORT = 19530
TOKEN = "root:Milvus"  # noqa: S105  # the default of a new server
SERVER = {  # requires a token; short intervals in milliseconds, so that tests do not wait
    "COMMON_SECURITY_AUTHORIZATIONENABLED": "true",
    "COMMON_SESSION_TTL": "600",  # seconds: on a busy machine a short one expires, and the server exits
    "PROXY_TIMETICKINTERVAL": "20",
    "QUERYCOORD_CHECKCHANNELINTERVAL": "100",
    "QUERYCOORD_CHECKSEGMENTINTERVAL": "100",
    "QUERYCOORD_DISTPULLINTERVAL": "100",
}
HEALTH = "http://127.0.0.1:9091/healthz"
READY, INSIDE = "Ctrl+C to exit", "--inside"
# The package binds a port to see whether it is free, and otherwise takes the next one without a word. Connections of a
# server that was killed make this fail for a minute, so one started again would listen on another port.
# `create_server` ignores them, and raises an error if the port is taken.
LAUNCH = """
import socket, milvus
milvus.MilvusServerConfig.try_bind_port = lambda self, port: socket.create_server(("127.0.0.1", port))
milvus.main()
"""


class ServerError(Exception):
    """No server is available."""


def install() -> None:
    """Install the package into a separate environment, because it pins old versions."""
    if (VENV / "bin" / "milvus-server").exists():
        return
    print(f"Into {VENV}: {SIZE}.", flush=True)
    python = str(VENV / "bin" / "python")
    for command in ([sys.executable, "-m", "venv", str(VENV)], [python, "-m", "pip", "install", "-q", PACKAGE]):
        if subprocess.run(command).returncode:
            raise ServerError(f"{' '.join(command[1:])} failed (see above); set MILVUS_URI to use another server.")


def namespace() -> list[str]:
    """The command prefix that runs a command in a separate network namespace."""
    words = ["unshare", "--net"]
    if shutil.which("unshare") and os.getuid() != 0:
        words.append("--map-root-user")
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True).returncode:
        raise ServerError(
            f"`{' '.join(words)}` is not permitted here, and the server would listen on every interface; permit it, or "
            "use a running server: MILVUS_URI=http://127.0.0.1:19530 make test-milvus."
        )
    return words


def raise_loopback() -> None:
    """Switch on the loopback device, as `ip link set lo up` does: SIOCSIFFLAGS with IFF_UP."""
    import fcntl  # not available on Windows, which has no namespaces either

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 1))


def certify(folder: Path) -> Path | None:
    """Write a key and a certificate for 127.0.0.1, valid for two days; None if openssl is not installed."""
    if not shutil.which("openssl"):
        print("openssl is not installed: connecting without TLS.", flush=True)
        return None
    certificate = folder / "certificate.pem"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", str(folder / "key.pem"), "-out", str(certificate))
    subprocess.run(["openssl", "req", "-x509", *kind, *name, *files], check=True, capture_output=True)
    return certificate


def tls_of_server(certificate: Path | None) -> dict[str, str]:
    """Environment of the server for its certificate."""
    if certificate is None:
        return {}
    key = certificate.with_name("key.pem")
    return {"COMMON_SECURITY_TLSMODE": "1", "TLS_SERVERPEMPATH": str(certificate), "TLS_SERVERKEYPATH": str(key)}


def client(certificate: Path | None) -> dict[str, str]:
    """Environment of the command that uses the server."""
    if certificate is None:
        return {"MILVUS_URI": f"http://127.0.0.1:{PORT}", "MILVUS_TOKEN": TOKEN}
    tls = {"MILVUS_TLS_CA": str(certificate)}
    return {"MILVUS_URI": f"https://127.0.0.1:{PORT}", "MILVUS_TOKEN": TOKEN, **tls}


@contextmanager
def running(data: Path, certificate: Path | None) -> Iterator[None]:
    """Run a server during a block; the server and its children are killed when the block ends."""
    server = subprocess.Popen(
        [str(VENV / "bin" / "python"), "-u", "-c", LAUNCH, "--data", str(data), "--proxy-port", str(PORT)],
        env=os.environ | SERVER | tls_of_server(certificate),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert server.stdout is not None  # noqa: S101  # it is a pipe
        said = next((line for line in server.stdout if READY in line or "timeout" in line), "")  # or it has ended
        if READY not in said:
            raise ServerError(f"the server did not start; end of its log:\n{_log_tail(data)}")
        yield
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # only the session started above
        server.communicate()
        _wait_for_end(server.pid)


def _wait_for_end(group: int) -> None:
    """Wait, a minute at most, until a killed process group is gone: with much memory, it keeps its ports longer."""
    with suppress(ProcessLookupError):
        for _ in range(600):
            os.killpg(group, 0)
            time.sleep(0.1)


def is_healthy() -> bool:
    """Whether the server reports that it is healthy."""
    try:
        with urllib.request.urlopen(HEALTH, timeout=10) as answer:
            return b"OK" in answer.read()
    except OSError:
        return False


def _log_tail(data: Path) -> str:
    logs = sorted((data / "logs").glob("*.log"))
    return "\n".join(line for log in logs for line in log.read_text(errors="replace").splitlines()[-10:])


def _run_inside(arguments: Sequence[str]) -> int:
    raise_loopback()
    with tempfile.TemporaryDirectory(prefix="rmsh-milvus-") as name:
        folder = Path(name)
        certificate = certify(folder)
        with running(folder, certificate):
            code = subprocess.run([sys.executable, *arguments], env=os.environ | client(certificate)).returncode
            if code and not is_healthy():
                raise ServerError(f"the server exited during the run; end of its log:\n{_log_tail(folder)}")
            return code


def main(arguments: Sequence[str]) -> int:
    """Run Python with these arguments and a server, and return its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped too
    try:
        if arguments[:1] == [INSIDE]:
            return _run_inside(arguments[1:])
        if os.environ.get("MILVUS_URI"):
            return subprocess.run([sys.executable, *arguments]).returncode
        words = [*namespace(), sys.executable, __file__, INSIDE, *arguments]
        install()
        os.execvp(words[0], words)  # noqa: S606  # replaces this process, so that stopping it stops the server
    except ServerError as error:
        print(f"milvus_server.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
