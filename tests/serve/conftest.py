"""Fixtures: the server of a small library, asked in the same process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from rmsh.search.searcher import Searcher
from rmsh.serve.app import create_app
from rmsh.serve.security import Access
from rmsh.serve.service import SearchService

TOKEN = "a token of enough letters"  # noqa: S105
Serve = Callable[..., TestClient]


@pytest.fixture
def serve(colours: Path) -> Iterator[Serve]:
    """Make a client of a server with some rules of access."""
    with ExitStack() as stack:

        def make(base_url: str = "http://127.0.0.1:8000", **access: Any) -> TestClient:
            searcher = stack.enter_context(Searcher.open(colours))
            app = create_app(SearchService(searcher, name="colours"), Access(**access))
            return TestClient(app, base_url=base_url, raise_server_exceptions=False)

        yield make


@pytest.fixture
def client(serve: Serve) -> TestClient:
    return serve()


@pytest.fixture
def token() -> str:
    return TOKEN
