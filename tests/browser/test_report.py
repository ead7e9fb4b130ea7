"""The report of a build in Chromium: it fits a phone, is dark in dark mode, and axe finds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser

from rmsh.builder.report import render_report

LONG = "a_name_without_any_space_" * 8


def _report() -> dict[str, Any]:
    score = {"value": 0.5, "chance": 0.25}
    item = {"id": LONG, "text": LONG, "picture": "a.jpg", "labels": [LONG]}
    searches = [
        {"direction": direction, "query": item, "hits": [{**item, "distance": 3, "shared": [LONG]}] * 5}
        for direction in ("t2i", "i2t", "i2i")
    ]
    scores = dict.fromkeys(("ndcg", "precision", "map"), score) | {
        "queries": 9,
        "database": 9,
        "settings": {"k": 50},
    }
    recall = {f"recall@{k}": score for k in (1, 10)} | {"queries": 9, "items": 9}
    return {
        "name": LONG,
        "warning": f"Beware of {LONG}.",
        "counts": {"items": 9, "pictures": 9, "texts": 9, "labelled": 9, "classes": 9},
        "bits": 64,
        "model": "0123456789abcdef" * 4,
        "bytes_per_item": {"codes": 16.0, "vectors": 768.0},
        "delta": None,
        "recall": dict.fromkeys(("t2i", "i2t"), recall),
        "scores": dict.fromkeys(("t2i", "i2t", "i2i"), scores),
        "words": None,
        "no_scores": "",
        "searches": searches,
        "skipped": {"count": 1, "examples": [LONG]},
        "credit": LONG,
        "seconds": {"read": 1.0},
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_report_fits_and_has_no_violation(width: int, scheme: Any, *, chromium: Browser, tmp_path: Path) -> None:
    Image.new("RGB", (400, 300), "red").save(tmp_path / "a.jpg")
    (tmp_path / "report.html").write_text(render_report(_report(), images=tmp_path), encoding="utf-8")
    with chromium.new_context(
        color_scheme=scheme, bypass_csp=True, viewport={"width": width, "height": 800}
    ) as context:
        page = context.new_page()
        page.goto((tmp_path / "report.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(page).response["violations"]
        assert [f"{one['impact']}: {one['id']}: {one['nodes'][0]['html']}" for one in found] == []
        # The canvas follows color-scheme; the text must be its opposite.
        light = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).reduce((a, b) => a + Number(b), 0)")
        assert (light > 3 * 128) is (scheme == "dark")
