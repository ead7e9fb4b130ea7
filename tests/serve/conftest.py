"""Fixtures: the server of a small library, asked in the same process or over sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from rmsh.search.searcher import Searcher
from rmsh.serve.app import create_app
from rmsh.serve.security import Access
from rmsh.serve.server import configure
from rmsh.serve.service import SearchService

collect_ignore = ["valid_requests.py"]  # imported by Schemathesis
TOKEN = "a token of enough letters"  # noqa: S105
Serve = Callable[..., TestClient]
Listen = Callable[..., int]
ServerThread = Callable[[uvicorn.Config, socket.socket], AbstractContextManager[None]]


@pytest.fixture
def serve(colours: Path) -> Iterator[Serve]:
    """Make a client of a server with some rules of access."""
    with ExitStack() as stack:

        def make(base_url: str = "http://127.0.0.1:8000", folder: Path = colours, **access: Any) -> TestClient:
            searcher = stack.enter_context(Searcher.open(folder))
            app = create_app(SearchService(searcher, name="colours"), Access(**access))
            return TestClient(app, base_url=base_url, raise_server_exceptions=False)

        yield make


@pytest.fixture
def listen(colours: Path, server_thread: ServerThread) -> Iterator[Listen]:
    """Start a server with some rules of access on a free port, which is returned."""
    with ExitStack() as stack:

        def start(*, proxies: Sequence[str] = (), **access: Any) -> int:
            searcher = stack.enter_context(Searcher.open(colours))
            app = create_app(SearchService(searcher, name="colours"), Access(**access))
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # little waits in the kernel to be read
            stack.enter_context(server_thread(configure(app, proxies=proxies), listener))
            return int(listener.getsockname()[1])

        yield start


@pytest.fixture
def client(serve: Serve) -> TestClient:
    return serve()


@pytest.fixture
def token() -> str:
    return TOKEN
