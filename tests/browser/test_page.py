"""The page in Chromium: what a person does, and what they see."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Route, expect

from rmsh.codes import Codes
from rmsh.library import Item, Library

OpenPage = Callable[..., Page]
TOKEN = "a token of enough letters"  # noqa: S105


def _cards(page: Page) -> Locator:
    return page.locator("#hits .card")


def _search(page: Page, words: str) -> None:
    page.get_by_role("searchbox").fill(words)
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_contain_text(f"“{words}”")
    expect(page.locator("#hits")).to_have_attribute("aria-busy", "false")


def _colour_of(picture: Locator) -> tuple[int, ...]:
    """What is seen in the middle of a picture."""
    picture.scroll_into_view_if_needed()
    picture.evaluate("image => image.decode()")
    shot = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
    pixel = shot.getpixel((shot.width // 2, shot.height // 2))
    assert isinstance(pixel, tuple)
    return tuple(255 * (light > 127) for light in pixel)


def _png(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (30, 20), colour).save(file, "PNG")
    return file.getvalue()


def _drop(page: Page, content: bytes, *, event: str = "drop", kind: str = "image/png") -> None:
    page.evaluate(
        """([content, event, kind]) => {
            const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
            const given = new DataTransfer();
            given.items.add(new File([bytes], "picture.png", { type: kind }));
            const dragged = new DragEvent(event, { dataTransfer: given, bubbles: true, cancelable: true });
            const pasted = new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true });
            document.body.dispatchEvent(event === "paste" ? pasted : dragged);
        }""",
        [base64.b64encode(content).decode(), event, kind],
    )


def test_before_anything_is_asked_the_page_shows_some_of_the_library(page: Page) -> None:
    expect(page.locator("#title")).to_have_text("A few items of this library")
    expect(_cards(page)).to_have_count(12)
    expect(page.locator("#facts")).to_contain_text("64 items")
    expect(page.locator(".distance")).to_have_count(0)


def test_a_picture_is_shown_whole_and_its_frame_takes_the_colours_of_its_edges(page: Page) -> None:
    _search(page, "blue")
    picture = _cards(page).first.locator("img")
    picture.scroll_into_view_if_needed()
    picture.evaluate("image => image.decode()")
    assert picture.evaluate("image => getComputedStyle(image).objectFit") == "contain"
    ground = picture.evaluate("image => getComputedStyle(image).backgroundImage")
    assert re.fullmatch(r"linear-gradient\(.*rgb\(\d, \d, 25\d\) 50%, rgb\(\d, \d, 25\d\) 50%\)", ground)


def test_words_find_pictures_of_those_things(page: Page) -> None:
    _search(page, "red and blue")
    expect(_cards(page)).to_have_count(24)
    assert [_colour_of(_cards(page).nth(i).locator("img")) for i in (0, 7)] == [(255, 0, 255)] * 2
    expect(_cards(page).first.locator(".distance")).to_have_text("0 bits")
    expect(page.get_by_role("status")).to_have_text("24 images found, the nearest 0 bits away.")


def test_typing_alone_searches(page: Page) -> None:
    page.get_by_role("searchbox").press_sequentially("blue")
    expect(page.locator("#title")).to_have_text("24 best images for “blue”")
    expect(page).to_have_url(re.compile(r"\?q=blue$"))


def test_labels_that_match_are_marked_by_shape_and_words(page: Page) -> None:
    _search(page, "red")
    first = page.locator("#hits .labels .matches").first
    expect(first).to_have_text("red (matches the query)")
    assert first.evaluate("e => getComputedStyle(e, '::before').content").startswith('"✓')
    other = page.locator("#hits .labels li:not(.matches)").first
    shapes = [label.evaluate("e => getComputedStyle(e).borderRadius") for label in (first, other)]
    assert shapes[0] != shapes[1]


def test_the_next_page_follows_and_takes_the_focus(page: Page) -> None:
    _search(page, "green")
    page.get_by_role("button", name="Show more").click()
    expect(_cards(page)).to_have_count(48)
    expect(_cards(page).nth(24).locator(".onward")).to_be_focused()
    expect(page.get_by_role("status")).to_contain_text("24 more images")
    page.get_by_role("button", name="Show more").click()
    expect(_cards(page)).to_have_count(64)
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
    ids = page.locator("#hits .onward").evaluate_all("links => links.map(link => link.href)")
    assert len(set(ids)) == 64


def test_a_dropped_image_finds_images(page: Page) -> None:
    _drop(page, _png("yellow"), event="dragenter")
    expect(page.get_by_text("Drop the image to search with it")).to_be_visible()
    _drop(page, _png("yellow"))
    expect(page.locator("#title")).to_have_text("24 best images for your image")
    assert _colour_of(_cards(page).first.locator("img")) == (255, 255, 0)
    expect(page.get_by_text("Drop the image to search with it")).to_be_hidden()
    expect(page.locator("#parts img")).to_be_visible()


def test_a_dropped_image_finds_texts_if_these_are_chosen(page: Page) -> None:
    page.get_by_role("radio", name="Texts").check()
    _drop(page, _png("yellow"))
    expect(page.locator("#title")).to_have_text("24 best texts for your image")
    expect(_cards(page).first.locator(".onward")).to_have_text("light that is red and green")


def test_a_pasted_picture_and_a_chosen_file_do_the_same(page: Page) -> None:
    _drop(page, _png("cyan"), event="paste")
    expect(_cards(page).first.locator(".onward")).to_have_text("light that is green and blue")
    page.locator("#file").set_input_files({"name": "q.png", "mimeType": "image/png", "buffer": _png("red")})
    expect(_cards(page).first.locator(".onward")).to_have_text("light that is red")


def test_a_picture_search_can_be_gone_back_to_and_linked(page: Page, open_page: OpenPage) -> None:
    _drop(page, _png("blue"))
    expect(_cards(page).first.locator(".onward")).to_have_text("light that is blue")
    expect(page).to_have_url(re.compile("code="))
    link = page.url
    page.get_by_role("button", name="Like your image: remove").click()
    expect(page.locator("#title")).to_have_text("A few items of this library")
    page.go_back()
    expect(_cards(page).first.locator(".onward")).to_have_text("light that is blue")
    other = open_page(link[link.index("?") :])
    expect(_cards(other).first.locator(".onward")).to_have_text("light that is blue")


def test_a_file_that_is_no_picture_is_refused_in_words_and_the_page_goes_on(page: Page) -> None:
    _search(page, "red")
    _drop(page, b"this is no picture")
    expect(page.get_by_role("alert")).to_contain_text("cannot be read as an image")
    page.get_by_role("button", name="Try again").click()
    expect(_cards(page)).to_have_count(24)


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(page: Page) -> None:
    expect(_cards(page)).to_have_count(12)
    page.evaluate(
        """() => { const given = new DataTransfer();
            given.items.add(new File([new Uint8Array(17 * 2 ** 20)], "large.png", { type: "image/png" }));
            document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true })); }"""
    )
    expect(page.get_by_role("alert")).to_contain_text("The image has 17 MB; at most 16 MB are allowed.")


def test_a_hit_is_searched_onward_from(page: Page) -> None:
    _search(page, "red")
    _cards(page).first.locator(".onward").click()
    expect(page.locator("#title")).to_have_text("24 best images like this item")
    expect(page.locator("#parts img")).to_be_visible()
    page.go_back()
    expect(page.locator("#title")).to_contain_text("“red”")


def _part(page: Page, words: str) -> Locator:
    return page.locator("#parts li").filter(has_text=words)


def test_words_are_added_and_subtracted_and_their_parts_removed(
    open_page: OpenPage, joint_colours: Path, serve_folder: Callable[..., Any]
) -> None:
    with serve_folder(joint_colours) as url:
        page = open_page(base=url)
        _search(page, "red + blue")
        expect(_cards(page).first.locator(".onward")).to_have_text("light that is red and blue")
        page.get_by_role("button", name="red: added; subtract it instead").click()
        expect(page.locator("#title")).to_contain_text("“- red + blue”")
        expect(_cards(page).first.locator(".onward")).to_have_text("light that is blue")
        expect(page.get_by_role("searchbox")).to_have_value("- red + blue")
        page.get_by_role("button", name="red: remove").click()
        expect(page.locator("#title")).to_contain_text("“blue”")
        expect(page.locator("#parts")).to_be_hidden()


def test_an_image_is_given_together_with_words(
    open_page: OpenPage, joint_colours: Path, serve_folder: Callable[..., Any]
) -> None:
    with serve_folder(joint_colours) as url:
        page = open_page(base=url)
        _search(page, "blue")
        _drop(page, _png("red"))
        expect(page.locator("#title")).to_have_text("8 best images for this query")
        expect(_cards(page).first.locator(".onward")).to_have_text("light that is red and blue")
        expect(page.locator("#parts img")).to_be_visible()
        link = page.url
        page.get_by_role("button", name="Like your image: added; subtract it instead").click()
        expect(_cards(page).first.locator(".onward")).to_have_text("light that is blue")
        other = open_page(link[link.index("?") :], base=url)
        expect(_cards(other).first.locator(".onward")).to_have_text("light that is red and blue")


def test_a_hit_is_added_to_the_query_and_another_subtracted_by_keyboard(
    open_page: OpenPage, joint_colours: Path, serve_folder: Callable[..., Any]
) -> None:
    with serve_folder(joint_colours) as url:
        page = open_page("?q=green", base=url)
        page.get_by_role("button", name="Details of light that is red", exact=True).focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Add to the query").press("Enter")
        expect(_part(page, "Like this item").get_by_role("button", name="remove")).to_be_focused()
        expect(_cards(page).first.locator(".onward")).to_have_text("light that is red and green")
        page.keyboard.press("Enter")
        expect(page.locator("#title")).to_contain_text("“green”")
        yellow = _cards(page).filter(has=page.get_by_text("light that is red and green", exact=True))
        yellow.hover()
        yellow.get_by_title("Subtract from the query").click()
        expect(page.locator("#parts .minus")).to_have_count(1)
        expect(_cards(page).filter(has=page.get_by_text("light that is red and green", exact=True))).to_have_count(0)


def test_a_library_without_a_joint_space_offers_no_parts(page: Page) -> None:
    _search(page, "red")
    _drop(page, _png("blue"))
    expect(page.locator("#title")).to_have_text("24 best images for your image")
    expect(page.locator("#parts li")).to_have_count(1)
    expect(page.get_by_title("Add to the query")).to_have_count(0)
    expect(page.locator("#composing")).to_be_hidden()


def test_a_label_narrows_the_results_and_lets_go(page: Page) -> None:
    _search(page, "red")
    green = page.locator("#narrow").get_by_role("button", name="green")
    green.click()
    expect(page.locator("#narrow").get_by_role("button", name="green", pressed=True)).to_be_visible()
    labelled = page.locator("#hits .labels").filter(has_text="green")
    expect(labelled).to_have_count(24)
    green.click()
    expect(labelled).to_have_count(8)


def test_a_filter_is_written_and_nothing_found_offers_to_clear_it(page: Page) -> None:
    _search(page, "red")
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Only items where").fill("label=red and not label=red")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#message")).to_contain_text("No item matches the filter")
    expect(page.get_by_role("status")).to_have_text("No images found.")
    page.get_by_role("button", name="Clear the filter").click()
    expect(_cards(page)).to_have_count(24)


def test_a_filter_that_is_being_written_when_the_page_becomes_ready_stays(page: Page) -> None:
    held: list[Route] = []
    page.route("**/api/about", lambda route: held.append(route))
    with page.expect_request("**/api/about"):
        page.goto(page.url + "?q=red")
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Only items where").fill("label=red")
    held[0].continue_()
    expect(_cards(page)).to_have_count(24)
    expect(page.get_by_label("Only items where")).to_have_value("label=red")


def test_the_warning_of_a_build_is_shown(page: Page) -> None:
    def warned(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "warning": "Beware of <b>chance</b>."})

    expect(page.locator("#warning")).to_be_hidden()
    page.route("**/api/about", warned)
    page.reload()
    expect(page.locator("#warning")).to_have_text("Beware of <b>chance</b>.")


def test_a_filter_that_cannot_be_read_is_explained(open_page: OpenPage) -> None:
    page = open_page("?q=red&where=colour")
    expect(page.get_by_role("alert")).to_contain_text("The filter cannot be read at character 1")


def test_the_codes_are_shown_as_bits_and_frames_count_the_distance(page: Page) -> None:
    page.get_by_label("Show codes").check(force=True)
    _search(page, "red")
    expect(page.get_by_role("img", name="The 12-bit code of the query")).to_be_visible()
    far = _cards(page).nth(9)
    expect(far.locator(".distance")).to_have_text("4 bits")
    frames = far.locator(".bits .differs").get_attribute("d") or ""
    assert frames.count("M") == 4
    expect(far.get_by_role("img", name="Code: 4 bits of 12 differ")).to_be_visible()


def test_the_details_show_both_codes_and_ways_onward(page: Page) -> None:
    _search(page, "green")
    _cards(page).first.get_by_role("button", name="Details").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", level=2)).to_have_text("light that is green")
    expect(dialog.locator(".bits")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    _cards(page).first.get_by_role("button", name="Details").click()
    dialog.get_by_role("link", name="Search by its text").click()
    expect(page).to_have_url(re.compile("by=text"))
    expect(dialog).to_be_hidden()


def test_the_keyboard_reaches_everything(page: Page) -> None:
    expect(_cards(page)).to_have_count(12)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the results")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("blue")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_contain_text("“blue”")
    links = page.locator("#hits .onward")
    for key, focused in (("ArrowDown", links.first), ("ArrowUp", page.get_by_role("searchbox"))):
        page.keyboard.press(key)
        expect(focused).to_be_focused()
    page.keyboard.press("ArrowDown")
    for key, place in (("ArrowRight", 1), ("ArrowLeft", 0), ("End", 23), ("Home", 0)):
        page.keyboard.press(key)
        expect(links.nth(place)).to_be_focused()
    page.keyboard.press("ArrowDown")
    below, first = (link.bounding_box() for link in (page.locator(".onward:focus"), links.first))
    assert below
    assert first
    assert (below["x"], below["y"] > first["y"]) == (first["x"], True)
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_contain_text("like this item")


def test_tab_stops_at_one_card_and_goes_on(page: Page) -> None:
    _search(page, "blue")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(_cards(page).nth(1).locator(".onward")).to_be_focused()
    page.keyboard.press("Tab")
    expect(_cards(page).nth(1).get_by_role("button", name="Details")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Show more")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(_cards(page).nth(1).get_by_role("button", name="Details")).to_be_focused()


def test_the_api_page_lists_every_route_with_its_parameters(page: Page) -> None:
    page.get_by_role("link", name="API").click()
    expect(page.get_by_role("heading", name="GET /api/search")).to_be_visible()
    k = page.get_by_label("GET /api/search").get_by_role("row", name="k integer")
    expect(k).to_contain_text("1 to 100")
    expect(page.get_by_label("POST /api/search").get_by_role("row", name="picture file")).to_contain_text("required")
    described = page.evaluate(
        "fetch('../openapi.json').then((answer) => answer.json())"
        ".then(({ paths }) => Object.values(paths).flatMap(Object.keys).length)"
    )
    expect(page.locator("#routes section")).to_have_count(described)
    page.get_by_role("link", name="Back to the search").click()
    expect(_cards(page)).to_have_count(12)


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_cut_off_on_a_narrow_screen(width: int, open_page: OpenPage) -> None:
    description = open_page("static/api.html", viewport={"width": width, "height": 800})
    expect(description.locator("#routes section").first).to_be_visible()
    assert description.evaluate("document.documentElement.scrollWidth") <= width
    page = open_page("?q=red", viewport={"width": width, "height": 800})
    expect(_cards(page)).to_have_count(24)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.get_by_role("button", name="Search", exact=True)).to_be_in_viewport(ratio=1)


def test_dark_mode_is_dark_and_light_mode_light(open_page: OpenPage) -> None:
    grounds = []
    for scheme in ("dark", "light"):
        page = open_page("?q=red", color_scheme=scheme)
        expect(_cards(page)).to_have_count(24)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        grounds.append(sum(int(part) for part in ground.strip("rgb()").split(",")))
    assert grounds[0] < 3 * 60
    assert grounds[1] > 3 * 200


def test_text_that_holds_html_is_shown_as_text(
    open_page: OpenPage, colours: Path, serve_folder: Callable[..., Any]
) -> None:
    nasty = '<img src=x onerror="document.title=1"><b>bold</b> & <script>alert(1)</script>'
    with Library.open(colours, writable=True) as library:
        model = library.generation().fingerprint
        code = library.codes(["red"], "text")
        codes = Codes(code.packed, 12, [nasty])
        library.add([Item(nasty, text=nasty, labels=(nasty,))], {"text": codes}, model=model)
    with serve_folder(colours) as url:
        page = open_page("?q=red&to=texts", base=url)
        expect(_cards(page).nth(1).locator(".onward")).to_have_text(nasty)
        expect(page.locator("#hits b, #hits script")).to_have_count(0)
        _cards(page).nth(1).get_by_role("button", name="Details").click()
        expect(page.get_by_role("dialog").get_by_role("heading", level=2)).to_have_text(nasty)
        page.keyboard.press("Escape")
        _cards(page).nth(1).locator(".onward").click()
        expect(page.locator("#title")).to_have_text("8 best texts like this item")


def test_a_picture_that_is_gone_is_said_to_be(
    open_page: OpenPage, colours: Path, serve_folder: Callable[..., Any]
) -> None:
    (colours / "red.png").unlink()
    with serve_folder(colours) as url:
        page = open_page("?q=red", base=url)
        expect(_cards(page).first).to_contain_text("The image cannot be shown")


def test_a_private_server_asks_for_its_token(
    open_page: OpenPage, colours: Path, serve_folder: Callable[..., Any]
) -> None:
    with serve_folder(colours, token=TOKEN) as url:
        page = open_page("?q=red", base=url)
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.locator("#message")).to_contain_text("The access token is wrong")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        expect(_cards(page)).to_have_count(8)
        assert _colour_of(_cards(page).first.locator("img")) == (255, 0, 0)


def test_a_link_with_the_token_opens_a_private_server_and_does_not_keep_it(
    open_page: OpenPage, colours: Path, serve_folder: Callable[..., Any]
) -> None:
    with serve_folder(colours, token=TOKEN) as url:
        page = open_page("?q=red#token=a%20token%20of%20enough%20letters", base=url)
        expect(_cards(page)).to_have_count(8)
        assert "token" not in page.url


def test_a_server_that_was_stopped_is_noticed(chromium: Any, colours: Path, serve_folder: Callable[..., Any]) -> None:
    with serve_folder(colours) as url:
        page = chromium.new_page()
        page.goto(url + "?q=red")
        expect(_cards(page)).to_have_count(8)
    page.get_by_role("searchbox").fill("blue")
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond.")
    page.close()
