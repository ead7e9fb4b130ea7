"""The time line, the facets and the duplicates of photographs in Chromium: by mouse, by keyboard, and with axe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, Route, expect

OpenPage = Callable[..., Page]
ServeFolder = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="module")
def served(photographs: Path, serve_folder: ServeFolder) -> Iterator[str]:
    with serve_folder(photographs) as url:
        yield url


@pytest.fixture
def page(open_page: OpenPage, served: str) -> Page:
    return open_page(base=served)


def _bar(page: Page, period: str) -> Locator:
    return page.get_by_role("button", name=re.compile(rf"^{period}, \d+ images?$"))


def _cards(page: Page) -> Locator:
    return page.locator("#hits .card")


def _choose(page: Page, menu: str, value: str) -> None:
    page.locator(".menu summary", has_text=menu).click()
    page.locator(".menu[open]").get_by_role("button", name=value).click()


def _settled(page: Page) -> None:
    expect(page.locator("#hits")).to_have_attribute("aria-busy", "false")


def test_a_bar_of_the_time_line_selects_a_period_and_a_second_click_removes_it(page: Page) -> None:
    expect(page.get_by_label("Images by year").get_by_role("button")).to_have_count(8)
    _bar(page, "2016").click()
    expect(page).to_have_url(re.compile(r"\?date=2016$"))
    expect(page.locator("#title")).to_have_text("Images that match the filter")
    expect(_cards(page)).to_have_count(8)
    expect(page.locator("#narrow").get_by_role("button", name="2016", pressed=True)).to_be_visible()
    _bar(page, "Jun 2016").click()
    expect(_cards(page)).to_have_count(1)
    expect(_cards(page)).to_contain_text("red and blue")
    _bar(page, "Jun 2016").click()
    expect(_cards(page)).to_have_count(8)
    _bar(page, "2016").click()
    expect(page.locator("#title")).to_have_text("A few items of this library")
    expect(page.get_by_label("Images by month")).to_have_count(0)


def test_the_height_of_a_bar_is_the_number_of_images(page: Page) -> None:
    heights = [_bar(page, year).locator(".amount").bounding_box() for year in ("2015", "2021")]
    numbers = [int((_bar(page, year).get_attribute("title") or "").split()[1]) for year in ("2015", "2021")]
    assert heights[0]
    assert heights[1]
    assert heights[0]["height"] / heights[1]["height"] == pytest.approx(numbers[0] / numbers[1], abs=0.05)


def test_the_keyboard_selects_a_period_and_keeps_its_place(page: Page) -> None:
    bars = page.get_by_label("Images by year").get_by_role("button")
    expect(bars.last).to_be_visible()
    page.locator("#filter summary").focus()
    page.keyboard.press("Tab")
    expect(bars.last).to_be_focused()
    for key, place in (("Home", 0), ("ArrowRight", 1), ("End", 7), ("ArrowLeft", 6)):
        page.keyboard.press(key)
        expect(bars.nth(place)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("date=2021"))
    _settled(page)
    expect(bars.nth(6)).to_be_focused()
    expect(bars.nth(6)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Images by month").locator(":focus")).to_have_count(1)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    expect(page.get_by_label("Images by month")).to_have_count(0)
    expect(bars.nth(6)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".menu summary").first).to_be_focused()


def test_facets_narrow_what_is_typed_together_with_the_written_filter(page: Page) -> None:
    page.get_by_role("searchbox").fill("green")
    page.keyboard.press("Enter")
    _settled(page)
    _choose(page, "Camera", "Canon")
    expect(_cards(page)).to_have_count(16)
    _choose(page, "Rating", "3 stars")
    expect(_cards(page)).to_have_count(2)
    expect(page.locator(".menu.on summary")).to_have_text(["Camera: Canon", "Rating: 3 stars"])
    page.locator("#filter summary").click()
    page.get_by_label("Only items where").fill("label=blue")
    page.get_by_role("button", name="Apply").click()
    expect(_cards(page)).to_have_count(1)
    page.locator("#narrow").get_by_role("button", name="3 stars").click()
    expect(_cards(page)).to_have_count(8)
    expect(page).to_have_url(re.compile(r"q=green&camera=Canon&where="))


def test_keywords_add_up_and_another_camera_takes_the_place_of_the_first(page: Page) -> None:
    _choose(page, "Keyword", "Beach")
    _choose(page, "Keyword", "a <b>")
    _choose(page, "Camera", "Canon")
    _choose(page, "Camera", "FUJI X")
    pressed = page.locator("#narrow [aria-pressed=true]")
    expect(pressed).to_have_text([re.compile(f"^{name}") for name in ("Beach", "a <b>", "FUJI X")])
    expect(page.locator("#narrow b")).to_have_count(0)


def test_a_menu_closes_by_escape_and_by_a_click_elsewhere(page: Page) -> None:
    menu = page.locator(".menu summary", has_text="Camera")
    menu.press("Enter")
    expect(page.locator(".menu[open]")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.locator(".menu[open]")).to_have_count(0)
    expect(menu).to_be_focused()
    menu.click()
    page.locator("#facts").click()
    expect(page.locator(".menu[open]")).to_have_count(0)


def test_all_that_passes_a_filter_can_be_looked_through(open_page: OpenPage, served: str) -> None:
    page = open_page("?camera=FUJI+X", base=served)
    expect(_cards(page)).to_have_count(24)
    page.get_by_role("button", name="Show more").click()
    expect(_cards(page)).to_have_count(47)
    expect(page.locator(".distance")).to_have_count(0)


def test_a_library_without_facts_has_no_time_line_and_no_duplicates(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator(".menu summary")).to_have_text(["Label"])
    expect(page.locator(".bars")).to_have_count(0)
    expect(page.get_by_role("link", name="Duplicates")).to_have_count(0)


def test_a_server_that_tells_no_facets_is_searched_as_before(page: Page) -> None:
    page.route("**/api/facets", lambda route: route.fulfill(json={"photos": 0, "facets": [], "months": []}))
    page.reload()
    expect(_cards(page)).to_have_count(12)
    expect(page.locator("#facets")).to_be_hidden()
    page.unroute("**/api/facets")
    page.route("**/api/facets", lambda route: route.fulfill(status=404, json={"error": "Not found."}))
    page.reload()
    expect(_cards(page)).to_have_count(12)
    expect(page.locator("#facets")).to_be_hidden()


def test_months_of_two_years_are_one_line(page: Page) -> None:
    def few(route: Route) -> None:
        found = route.fetch().json()
        months = [{"value": value, "count": 2} for value in ("2023-11", "2024-01", "2024-02")]
        route.fulfill(json={**found, "months": months})

    page.route("**/api/facets", few)
    page.reload()
    bars = page.get_by_label("Images by month")
    expect(bars.locator(".period")).to_have_text(["Nov 2023", "Jan 2024", "Feb"])
    expect(bars.locator(".gap")).to_have_count(1)


def test_a_misspelt_label_is_explained(open_page: OpenPage, served: str) -> None:
    page = open_page("?q=red&where=label%3Dredd", base=served)
    expect(page.locator("#message")).to_contain_text("No item has the label redd; did you mean red?")
    page = open_page("?q=red&where=not+label%3Dgren", base=served)
    expect(page.locator("#legend")).to_contain_text("did you mean green?")


def test_before_anything_is_asked_no_distance_is_shown_anywhere(page: Page) -> None:
    page.get_by_label("Show codes").check(force=True)
    expect(page.get_by_role("img", name="Code: 12 bits").first).to_be_visible()
    expect(page.locator(".bits .differs[d^=M]")).to_have_count(0)
    page.locator(".tool[title=Details]").first.click()
    expect(page.get_by_role("dialog").locator(".code p").first).to_have_text("12 bits")


def test_duplicates_are_shown_in_groups_with_the_best_marked(page: Page) -> None:
    page.get_by_role("link", name="Duplicates").click()
    expect(page.locator(".group")).to_have_count(4)
    similar = page.locator(".group").filter(has_text="Similar: 2 images")
    expect(similar.locator(".card").first).to_contain_text("Best")
    expect(similar.locator(".card").first).to_contain_text("64 × 48")
    expect(similar.locator(".card").nth(1)).not_to_contain_text("Best")
    image = similar.locator("img").first
    image.evaluate("image => image.decode()")
    assert image.evaluate("image => image.naturalWidth") == 64
    expect(page).to_have_title("Duplicates · colours")
    page.get_by_role("button", name="Bursts").press("Enter")
    expect(page.locator(".group")).to_have_count(1)
    expect(page.get_by_role("button", name="Bursts", pressed=True)).to_be_focused()
    expect(page).to_have_url(re.compile("kind=burst"))
    page.get_by_role("link", name="cyan 6").click()
    expect(page.locator("#title")).to_have_text("24 best images like this item")


def test_further_groups_follow_and_take_the_focus(page: Page, served: str) -> None:
    page.route(re.compile("/api/duplicates"), lambda route: route.continue_(url=f"{route.request.url}&k=3"))
    page.goto(served + "static/duplicates.html")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".group")).to_have_count(4)
    expect(page.locator(".group").last.get_by_role("link").first).to_be_focused()
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()


def test_a_library_that_does_not_know_its_files_says_how_to_find_duplicates(open_page: OpenPage) -> None:
    page = open_page("static/duplicates.html")
    expect(page.get_by_role("alert")).to_contain_text("run `rmsh sync` first")


STATES = {
    "home": ("", ".bars"),
    "period": ("?q=red&date=2016-06&keyword=Beach", "[aria-label='Images by month']"),
    "hint": ("?where=label%3Dredd", "#message:not([hidden])"),
    "duplicates": ("static/duplicates.html", ".group img"),
    "bursts": ("static/duplicates.html?kind=burst", ".group img"),
    "unknown": ("static/duplicates.html?kind=none", "#message.problem"),
}


def _violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['impact']}: {one['id']}: {one['nodes'][0]['html']}" for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_a_state_has_no_violation_and_fits_a_phone(
    state: str, scheme: str, *, open_page: OpenPage, served: str
) -> None:
    path, ready = STATES[state]
    page = open_page(path, base=served, color_scheme=scheme, bypass_csp=True, viewport={"width": 390, "height": 844})
    expect(page.locator(ready).first).to_be_visible()
    if page.locator(".menu").count():
        page.locator(".menu summary", has_text="Keyword").click()
    assert _violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
