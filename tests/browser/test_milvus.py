"""The page of a library that lies on a Milvus server, with pictures from their folder on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from rmsh.library import Library
from rmsh.milvus.push import push

pytestmark = pytest.mark.milvus


def test_words_find_pictures_that_are_shown(
    colours: Path,
    new_address: Callable[[], str],
    *,
    open_page: Callable[..., Page],
    serve_folder: Callable[..., Any],
) -> None:
    address = new_address()
    with Library.open(colours) as library:
        push(library, address)
    with serve_folder(address, model=colours / "model", pictures=colours) as url:
        page = open_page("?q=red+and+blue", base=url)
        expect(page.locator("#hits .card")).to_have_count(8)
        first = page.locator("#hits .card").first
        expect(first).to_contain_text("light that is red and blue")
        first.locator("img").evaluate("image => image.decode()")
        assert first.locator("img").evaluate("image => image.naturalWidth") == 64
        first.locator(".onward").click()
        expect(page.locator("#title")).to_have_text("7 best images like this item")
        expect(page.locator("#facets")).to_be_hidden()  # a collection does not count labels, nor know image files
