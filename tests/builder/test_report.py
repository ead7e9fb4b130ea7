"""The report: a page that escapes the data, loads nothing, and warns first."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

from PIL import Image

from rmsh.builder import Built
from rmsh.builder.report import data_address, render_report

EVIL = '<script>alert("x")</script>'


def _evil_report(report: dict[str, Any]) -> dict[str, Any]:
    item = {"id": EVIL, "text": EVIL, "picture": None, "labels": [EVIL]}
    hit = {**item, "distance": 3, "shared": [EVIL]}
    searches = [{"direction": direction, "query": item, "hits": [hit]} for direction in ("t2i", "i2t")]
    skipped = {"count": 1, "examples": [EVIL]}
    return {**report, "name": EVIL, "credit": EVIL, "searches": searches, "skipped": skipped}


def test_texts_of_users_are_not_markup(built: Built, tmp_path: Path) -> None:
    page = render_report(_evil_report(built.report), images=tmp_path)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 8


def test_the_page_needs_no_other_file(built: Built) -> None:
    page = (built.library / "report.html").read_text()
    assert "default-src 'none'" in page
    assert {address[:5] for address in re.findall(r'src="([^"]*)"', page)} == {"data:"}
    assert "http://" not in page


def test_scores_are_shown_with_chance(built: Built) -> None:
    score = built.report["scores"]["t2i"]["ndcg"]
    row = f"<td>Text to image<td>{score['value']:.3f}<td class=chance>{score['chance']:.3f}"
    assert row in (built.library / "report.html").read_text()


def test_a_thumbnail_is_small_upright_and_keeps_its_shape(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    Image.new("RGB", (2000, 1000), "red").save(tmp_path / "a.jpg", exif=exif)
    address = data_address(tmp_path / "a.jpg")
    assert address is not None
    with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as small:
        assert small.size == (144, 288)


def test_a_missing_image_has_no_thumbnail(tmp_path: Path) -> None:
    assert data_address(tmp_path / "gone.jpg") is None


def test_the_credit_of_the_images_is_shown(built: Built, tmp_path: Path) -> None:
    page = render_report({**built.report, "credit": "Drawings: nobody, CC0."}, images=tmp_path)
    assert "Drawings: nobody, CC0." in page


def test_a_warning_comes_before_everything_else(built: Built, tmp_path: Path) -> None:
    words = {"queries": 3, "images": 40, "precision@10": {"value": 0.2, "chance": 0.2, "best": 1.0, "error": 0.1}}
    page = render_report({**built.report, "warning": "Beware.", "words": words}, images=tmp_path)
    assert re.search(r"<h1>[^<]*</h1>\n<p class=warning[^>]*>Beware.</p>", page)
    assert "0.200 of the first ten" in page
