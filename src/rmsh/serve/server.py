"""Starting the server: where it listens, who may ask, and that it ends quietly."""

from __future__ import annotations

import contextlib
import errno
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from rmsh.core.errors import InputError
from rmsh.serve.app import create_app
from rmsh.serve.security import Access, is_loopback
from rmsh.serve.service import Answers

if TYPE_CHECKING:
    from rmsh.search.searcher import Searcher

__all__ = ["Listening", "serve"]

_MOST_CONNECTIONS = 256


@dataclass(frozen=True)
class Listening:
    """A server that is ready.

    Args:
        url: where the page is.
        token: what a client must know, or None.
        notes: what cannot be used, and why.
    """

    url: str
    token: str | None
    notes: tuple[str, ...]

    @property
    def link(self) -> str:
        """The page with its token, for a browser; what follows # is not sent and stands in no log."""
        return self.url if self.token is None else f"{self.url}#token={self.token}"


def serve(
    searcher: Searcher,
    *,
    name: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    names: Sequence[str] = (),
    on_ready: Callable[[Listening], None],
) -> None:
    """Serve until interrupted.

    Args:
        searcher: searches what is served.
        name: what it is called.
        host: the address to listen on; where other machines reach it, a token is needed.
        port: 0 for any that is free.
        token: what a client must know; one is made where it is needed and None.
        names: host names that clients use, beside addresses and this machine's own name.
        on_ready: is told when requests are answered.

    Raises:
        InputError: it cannot listen there.
        ConfigError: the token is too short.
    """
    beyond = not is_loopback(host)
    token = token or (secrets.token_urlsafe(24) if beyond else None)
    access = Access(
        token, names=[host, *names, *([socket.gethostname(), socket.getfqdn()] if beyond else [])], beyond=beyond
    )
    with _listen(host, port) as listener:
        answers = Answers(searcher, name=name)
        notes = answers.warm_up()
        on_ready(Listening(_url(listener, host), token, tuple(notes)))
        config = uvicorn.Config(
            create_app(answers, access),
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=5,
        )
        with contextlib.suppress(KeyboardInterrupt):  # how a person ends a server
            uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        reason = "another program listens there" if taken else error
        raise InputError(
            f"The server cannot listen on port {port} of {host} ({reason}); give another with --port or --host."
        ) from error


def _url(listener: socket.socket, host: str) -> str:
    """Where a browser on this machine finds the server."""
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104  # not bound to
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
