"""Fixtures: a server on loopback and pages of a real Chromium; without Chromium these tests are skipped."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect, sync_playwright

from rmsh.search.searcher import Searcher
from rmsh.serve.app import create_app
from rmsh.serve.security import Access
from rmsh.serve.service import SearchService

expect.set_options(timeout=60_000)  # a busy machine is slow, and that is no fault of the page
OpenPage = Callable[..., Page]
ServeFolder = Callable[..., AbstractContextManager[str]]
ServerThread = Callable[[uvicorn.Config, socket.socket], AbstractContextManager[None]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")  # Playwright keeps an event loop in this thread; tests after these run one of their own
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on this machine; on Debian, apt-get install chromium brings it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def serve_folder(server_thread: ServerThread) -> ServeFolder:
    """A context with the URL of a server of a library or of a collection."""

    @contextmanager
    def serve(
        place: Path | str, *, model: Path | None = None, pictures: Path | None = None, **access: Any
    ) -> Iterator[str]:
        opened = Searcher.open(place, model=model, images=pictures)
        with opened as searcher, socket.create_server(("127.0.0.1", 0)) as listener:
            app = create_app(SearchService(searcher, name=Path(place).name), Access(**access))
            config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
            with server_thread(config, listener):
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/"

    return serve


@pytest.fixture(scope="module")  # no server is left running next to other tests
def address(many_colours: Path, serve_folder: ServeFolder) -> Iterator[str]:
    with serve_folder(many_colours) as url:
        yield url


@pytest.fixture
def open_page(chromium: Browser, address: str) -> Iterator[OpenPage]:
    """Open the page, or an address below it; whatever goes wrong in it, or is asked of other places, fails the test."""
    wrong: list[str] = []
    contexts = []

    def make(path: str = "", *, base: str = address, **options: Any) -> Page:
        context = chromium.new_context(reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else None)
        page.on("request", lambda sent: None if sent.url.startswith((base, "blob:")) else wrong.append(sent.url))
        page.goto(base + path)
        return page

    yield make
    for context in contexts:
        context.close()
    noted = "Failed to load resource: "  # the browser's own note on a refusal, or on a server that has ended
    expected = (f"{noted}the server responded with a status of 4", f"{noted}net::ERR_CONNECTION")
    assert [what for what in wrong if not what.startswith(expected)] == []


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return open_page()
