"""Small pictures: in proportion, upright, kept while the file is the same."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from rmsh.core.errors import DataError
from rmsh.features.images import thumbnail
from rmsh.serve import thumbnails
from rmsh.serve.thumbnails import Thumbnails


def test_a_picture_is_made_once_while_its_file_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    monkeypatch.setattr(thumbnails, "thumbnail", lambda path, *a, **k: made.append(path) or thumbnail(path, *a, **k))
    small = Thumbnails()
    for size in (50, 50, 60):
        if not made or size == 60:
            Image.new("RGB", (size, 20)).save(tmp_path / "a.png")
        small.jpeg(tmp_path / "a.png", 40)
    assert len(made) == 2


@pytest.mark.parametrize(("size", "shown"), [((400, 100), (40, 10)), ((10, 20), (10, 20)), ((3, 900), (1, 40))])
def test_a_picture_keeps_its_proportions(size: tuple[int, int], shown: tuple[int, int], *, tmp_path: Path) -> None:
    Image.new("RGBA", size, (255, 0, 0, 0)).save(tmp_path / "a.png")
    small = Image.open(io.BytesIO(Thumbnails().jpeg(tmp_path / "a.png", 40)))
    assert small.size == shown
    assert small.convert("L").getextrema()[0] > 250  # what is transparent is white


def test_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("words")
    with pytest.raises(DataError, match="cannot be read as an image"):
        Thumbnails().jpeg(tmp_path / "a.png", 40)


def test_a_cache_never_holds_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(thumbnails, "thumbnail", lambda path, *_, **__: made.append(path.name) or bytes(int(path.name)))
    small = Thumbnails(10)
    for name in ("11", "6", "3", "6", "7", "6", "3"):  # 11 is never kept; 7 displaces 3, the least recently used
        small.jpeg(tmp_path / name, 40)
    assert made == ["11", "6", "3", "7", "6", "3"]
