"""The page over drawn scenes, built as a user builds: real pictures, the real encoders, a model that was learned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from lab.scenes import CREDIT, write_scenes
from rmsh.builder import BuildConfig, build
from rmsh.data.pairs import Pairs

OpenPage = Callable[..., Page]
CONFIG = BuildConfig()


class Served(NamedTuple):
    url: str
    unseen: Pairs  # scenes that are not in the library

    def picture_of(self, thing: str) -> str:
        """The file of a scene that shows one thing alone, which has two labels: its own and its theme's."""
        labels, names = np.asarray(self.unseen.labels), self.unseen.class_names
        alone = (labels[:, names.index(thing)] == 1) & (labels.sum(axis=1) == 2)
        return str(np.asarray(self.unseen.images)[np.flatnonzero(alone)[0]])


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, serve_folder: Callable[..., AbstractContextManager[str]]
) -> Iterator[Served]:
    """A library of four hundred scenes."""
    folder = tmp_path_factory.mktemp("scenes")
    write_scenes(folder / "drawn", 400)
    build(folder / "drawn", folder / "library", config=CONFIG)
    with serve_folder(folder / "library") as url:
        yield Served(url, write_scenes(folder / "unseen", 300, seed=1))


@pytest.fixture
def page(open_page: OpenPage, served: Served) -> Page:
    return open_page(base=served.url)


def _cards(page: Page) -> Locator:
    return page.locator("#hits .card")


def _counted(page: Page, label: str) -> Locator:
    """What says how many of the hits have a label: a card has no room for all of its labels."""
    return page.locator("#narrow").get_by_role("button", name=label, exact=True)


def _with(page: Page, words: str, *, nearest: int) -> int:
    """How many of the nearest hits say one of some words, in their text or their labels."""
    shown = _cards(page).all_text_contents()[:nearest]
    return sum(re.search(rf"\b({words})", text, re.IGNORECASE) is not None for text in shown)


@pytest.mark.parametrize("thing", ["guitar", "cat", "mountain", "helicopter"])
def test_typed_words_find_pictures_that_show_those_things(thing: str, page: Page) -> None:
    page.get_by_role("searchbox").press_sequentially(f"a {thing}")
    expect(page.locator("#title")).to_have_text(f"24 best images for “a {thing}”")
    expect(_cards(page).first.locator(".labels .matches")).to_contain_text(thing)
    assert _with(page, thing, nearest=4) == 4
    picture = _cards(page).first.locator("img")
    picture.evaluate("image => image.decode()")
    assert picture.evaluate("image => image.naturalWidth") == 256


def test_two_things_find_pictures_of_either_and_both_are_marked(open_page: OpenPage, served: Served) -> None:
    page = open_page("?q=a+dog+and+a+bicycle", base=served.url)
    expect(_cards(page)).to_have_count(24)
    assert _with(page, "dog|bicycle", nearest=8) >= 6
    marked = page.locator("#hits .labels .matches").all_text_contents()
    assert {text.partition(" (")[0] for text in marked} == {"dog", "bicycle"}


def test_a_new_image_finds_images_and_captions_of_what_it_shows(page: Page, served: Served) -> None:
    page.locator("#file").set_input_files(served.picture_of("guitar"))
    expect(page.locator("#title")).to_have_text("24 best images for your image")
    assert _with(page, "guitar", nearest=4) == 4
    page.get_by_role("radio", name="Texts").check()
    expect(page.locator("#title")).to_have_text("24 best texts for your image")
    assert _with(page, "guitar|strings|music", nearest=4) == 4


def test_a_filter_leaves_only_what_has_the_label(open_page: OpenPage, served: Served) -> None:
    page = open_page("?q=a+dog", base=served.url)
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Only items where").fill("label=vehicle and not label=dog")
    page.get_by_role("button", name="Apply").click()
    expect(_counted(page, "vehicle")).to_have_text("vehicle24")
    expect(page.locator("#hits .labels .matches")).to_have_count(0)


def test_pages_follow_each_other_to_the_end_of_what_passes_the_filter(open_page: OpenPage, served: Served) -> None:
    page = open_page("?q=music&where=label%3Dmusic", base=served.url)
    expect(_cards(page)).to_have_count(24)
    more = page.get_by_role("button", name="Show more")
    while more.is_visible():
        before = _cards(page).count()
        more.click()
        expect(_cards(page).nth(before)).to_be_visible()
    links = page.locator("#hits .onward").evaluate_all("links => links.map(link => link.href)")
    assert len(set(links)) == len(links) > 24
    expect(_counted(page, "music")).to_have_text(f"music{len(links)}")


def test_a_bad_upload_is_explained_and_the_next_good_one_works(page: Page, served: Served) -> None:
    content = Path(served.picture_of("guitar")).read_bytes()
    for bad in (content[:200], b"GIF89a", b""):
        page.locator("#file").set_input_files({"name": "q.jpg", "mimeType": "image/jpeg", "buffer": bad})
        expect(page.get_by_role("alert")).to_contain_text("cannot be read as an image")
    page.locator("#file").set_input_files({"name": "q.jpg", "mimeType": "image/jpeg", "buffer": content})
    expect(page.locator("#title")).to_have_text("24 best images for your image")


def test_a_phone_shows_whole_pictures_side_by_side(open_page: OpenPage, served: Served) -> None:
    page = open_page("?q=a+guitar", base=served.url, viewport={"width": 390, "height": 844}, has_touch=True)
    expect(_cards(page)).to_have_count(24)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first, second = (_cards(page).nth(place).locator("img").bounding_box() for place in (0, 1))
    assert first
    assert second
    assert (first["y"], first["x"] + first["width"] <= second["x"]) == (second["y"], True)
    assert second["x"] + second["width"] <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", "?q=a+dog+and+a+bicycle", "?q=a+dog&to=texts"])
def test_axe_finds_nothing(path: str, scheme: str, *, open_page: OpenPage, served: Served) -> None:
    page = open_page(path, base=served.url, color_scheme=scheme, bypass_csp=True)
    expect(_cards(page).first).to_be_visible()
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    assert [f"{one['impact']}: {one['id']}: {one['nodes'][0]['html']}" for one in found] == []


def test_who_drew_the_icons_is_credited(page: Page) -> None:
    expect(page.locator("footer")).to_contain_text(CREDIT)
