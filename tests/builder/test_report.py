"""The page of a report: nothing of the data is taken for markup, and nothing is fetched."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import pytest
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


def test_what_people_write_is_no_markup(built: Built) -> None:
    page = render_report(_evil_report(built.report), image_path=lambda name: None)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 8


def test_the_page_needs_no_other_file(built: Built) -> None:
    page = (built.library / "report.html").read_text()
    assert "default-src 'none'" in page
    assert {address[:5] for address in re.findall(r'src="([^"]*)"', page)} == {"data:"}
    assert "http://" not in page


def test_scores_stand_beside_chance(built: Built) -> None:
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


@pytest.mark.parametrize("name", [None, "gone.jpg"])
def test_a_picture_that_is_gone_has_no_thumbnail(tmp_path: Path, name: str | None) -> None:
    assert data_address(None if name is None else tmp_path / name) is None


def test_the_credit_of_the_pictures_is_shown(built: Built) -> None:
    page = render_report({**built.report, "credit": "Drawings: nobody, CC0."}, image_path=lambda name: None)
    assert "Drawings: nobody, CC0." in page
