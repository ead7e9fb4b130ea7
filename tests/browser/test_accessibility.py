"""axe-core finds nothing serious on any state of the page, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

OpenPage = Callable[..., Page]

STATES: dict[str, tuple[str, str]] = {  # name -> address, what is there when it is ready
    "home": ("", "#hits .card"),
    "pictures": ("?q=red", "#hits .card .matches"),
    "texts": ("?q=red+and+blue&to=texts&label=red", "#hits.texts .card"),
    "onward": ("?item=red+1&by=image", "#parts img"),
    "nothing": ("?q=red&where=label%3Dnone", "#message:not([hidden])"),
    "problem": ("?q=red&where=none", "#message.problem"),
    "API": ("static/api.html", "#routes section"),
}


def _violations(page: Page) -> list[str]:
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{one['impact']}: {one['id']}: {one['nodes'][0]['html']}" for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_a_state_of_the_page_has_no_violation(state: str, scheme: str, open_page: OpenPage) -> None:
    path, ready = STATES[state]
    page = open_page(path, color_scheme=scheme, bypass_csp=True)  # so that axe can be put into the page
    expect(page.locator(ready).first).to_be_visible()
    assert _violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_details_the_codes_and_the_filter_have_no_violation(scheme: str, open_page: OpenPage) -> None:
    page = open_page("?q=red", color_scheme=scheme, bypass_csp=True, viewport={"width": 390, "height": 800})
    page.get_by_label("Show codes").check(force=True)
    page.get_by_text("Filter", exact=True).click()
    expect(page.locator("#hits .bits").first).to_be_visible()
    assert _violations(page) == []
    page.locator(".tool[title=Details]").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert _violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_composed_query_has_no_violation(
    scheme: str, open_page: OpenPage, joint_colours: Path, serve_folder: Callable[..., Any]
) -> None:
    with serve_folder(joint_colours) as url:
        page = open_page("?q=red+-+green&item=blue", base=url, color_scheme=scheme, bypass_csp=True)
        expect(page.locator("#parts li")).to_have_count(3)
        page.locator("#hits .card").first.hover()
        assert _violations(page) == []


def test_every_picture_has_an_alternative_text(open_page: OpenPage) -> None:
    page = open_page("?q=red")
    expect(page.locator("#hits img")).to_have_count(24)
    texts = page.locator("#hits img").evaluate_all("images => images.map(image => image.alt)")
    assert all(text.startswith("light that is") for text in texts)
