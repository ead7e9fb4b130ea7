"""The report: scores of held-out items, and a page that escapes the data and loads nothing."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rmsh.builder import Built
from rmsh.builder.report import data_address, render_report, score, split_by
from rmsh.data.pairs import Pairs
from rmsh.hash_function import HashFunction, Layer
from rmsh.model import Model

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


DIRECTIONS = ["i2t", "t2i", "i2i", "t2t"]


@pytest.fixture
def model() -> Model:
    """One bit per class, for images and texts whose features are their labels."""
    function = HashFunction((Layer(np.eye(4, dtype=np.float32), np.full(4, -0.5, np.float32), "none"),))
    return Model({"image": function, "text": function}, "test", {})


def _pairs(labels: np.ndarray) -> Pairs:
    features = labels.astype(np.float32)
    names = tuple("abcd")
    return Pairs(ids=np.arange(len(labels)), images=features, texts=features, labels=labels, class_names=names)


def test_held_out_items_find_those_that_share_their_labels(model: Model) -> None:
    pairs = _pairs(np.tile(np.eye(4, dtype=np.uint8), (3, 1)))
    found = score(model, pairs, split_by(pairs, np.array(["0", "1"])))
    assert list(found) == DIRECTIONS
    assert [found[direction]["ndcg"]["value"] for direction in DIRECTIONS] == [1.0] * 4
    assert found["i2t"]["queries"] == 2
    assert found["i2t"]["ndcg"]["chance"] < 1


def test_there_are_no_scores_without_held_out_items_or_shared_labels(model: Model) -> None:
    pairs = _pairs(np.eye(4, dtype=np.uint8))
    assert score(model, pairs, split_by(pairs, np.array([], dtype=np.str_))) == {}
    assert score(model, pairs, split_by(pairs, np.array(["2"]))) == {}
