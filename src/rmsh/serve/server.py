"""Start the server: listening socket, access rules, shutdown."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from rmsh.core.errors import ConfigError, InputError
from rmsh.serve.app import create_app
from rmsh.serve.limits import MOST_CONNECTIONS, Connection
from rmsh.serve.security import Access, is_loopback
from rmsh.serve.service import SearchService

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from rmsh.search.searcher import Searcher
    from rmsh.serve.workers import Workers


_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of malloc.h


@dataclass(frozen=True)
class Listening:
    """A server that accepts requests."""

    url: str  # of the page
    token: str | None  # access token
    notes: tuple[str, ...]  # sentences about encoders that do not work

    @property
    def link(self) -> str:
        """The page with its token; the part after # is neither sent nor logged."""
        return self.url if self.token is None else f"{self.url}#token={self.token}"


def serve(
    searcher: Searcher,
    *,
    name: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    names: Sequence[str] = (),
    proxies: Sequence[str] = (),
    workers: Workers | None = None,
    on_ready: Callable[[Listening], None],
) -> None:
    """Serve until interrupted, under the name of the library on the page; options as for `rmsh serve`.

    A token is required, and generated if None, unless ``host`` and all ``names`` are of the loopback device.

    Raises:
        InputError: the address or port is not available.
        ConfigError: the token is too short, or the address of a proxy is malformed.
    """
    public = not is_loopback(host)
    token = token or (None if all(map(is_loopback, (host, *names))) else secrets.token_urlsafe(24))
    access = Access(
        token, names=[host, *names, *([socket.gethostname(), socket.getfqdn()] if public else [])], public=public
    )
    _return_freed_memory()
    service = SearchService(searcher, name=name, workers=workers)
    config = configure(create_app(service, access), proxies=proxies)
    with _listen(host, port) as listener:
        notes = service.warm_up()
        on_ready(Listening(_url(listener, host), token, tuple(notes)))
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C stops the server
            uvicorn.Server(config).run(sockets=[listener])


def _return_freed_memory() -> None:
    """Let glibc give freed memory back to the system; by default, a few hundred large uploads leave 200 MB behind."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        system = ctypes.CDLL(None)
        system.mallopt(_MMAP_THRESHOLD, 4 << 20)
        system.mallopt(_ARENA_MAX, 2)


def configure(app: ASGIApp, *, proxies: Sequence[str] = ()) -> uvicorn.Config:
    """The settings of the HTTP server; raises ConfigError if the address of a proxy is malformed."""
    try:
        trusted = [str(ipaddress.ip_address(proxy)) for proxy in proxies]
    except ValueError as error:
        raise ConfigError(f"{error}; give the IP address of the proxy as --trusted-proxy, such as 127.0.0.1.") from None
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # or else every damaged form fills the log
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="error",
        server_header=False,
        proxy_headers=bool(trusted),
        forwarded_allow_ips=trusted,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        reason = "the port is in use" if getattr(error, "errno", None) == errno.EADDRINUSE else error
        place = f"port {port} of {host} ({reason})"
        raise InputError(f"Cannot listen on {place}; choose another --port or --host.") from error


def _url(listener: socket.socket, host: str) -> str:
    """The URL for a browser on this machine."""
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104  # not bound to
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
