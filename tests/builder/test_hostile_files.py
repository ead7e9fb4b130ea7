"""A build of a folder with hostile files: they are listed, the rest is built, and nothing outside is read."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from rmsh.builder import BuildConfig, build
from rmsh.builder.build import work_folder
from rmsh.features import decoding
from rmsh.features.decoding import Decoder
from rmsh.library import Library
from rmsh.library.verify import verify

pytestmark = pytest.mark.skipif(os.name == "nt", reason="making links and pipes takes rights on Windows")

SECRET = "outside of the folder"  # noqa: S105  # not a password


@pytest.fixture
def _quick_decoder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A decoder with a second per image."""
    decoder = Decoder(seconds=1.0)
    monkeypatch.setattr(decoding, "_SHARED", decoder)
    yield
    decoder.close()


@pytest.fixture
def folder(drawings: Path) -> Path:
    """Forty drawings with a text each, in files."""
    rows = list(csv.DictReader((drawings / "metadata.csv").read_text().splitlines()))
    (drawings / "metadata.csv").unlink()
    for row in rows:
        (drawings / row["file_name"]).with_suffix(".txt").write_text(row["text"])
    return drawings


def _without(folder: Path, name: str, content: bytes | str | None) -> None:
    """Add a drawing whose text is a link, a pipe or bytes, and an image that is the same."""
    Image.new("RGB", (8, 8)).save(folder / f"text-{name}.png")
    for path in (folder / f"text-{name}.txt", folder / f"image-{name}.png"):
        if content is None:
            os.mkfifo(path)
        elif isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content)


@pytest.mark.usefixtures("_quick_decoder")
def test_hostile_files_are_listed_and_the_rest_is_built(
    folder: Path, hostile_images: dict[str, bytes], quick: BuildConfig, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    links = {"out": str(tmp_path / "secret"), "loop": "text-loop.txt", "device": "/dev/zero", "pipe": None}
    for name, content in (links | {"bytes": b"a \xff caption"}).items():
        _without(folder, name, content)
    (folder / "image-loop.png").unlink()
    (folder / "image-loop.png").symlink_to("image-loop.png")
    (folder / "CREDIT.txt").symlink_to(tmp_path / "secret")
    (folder / "outside").symlink_to("/etc")
    (folder / "dir.png").mkdir()
    for name in ("progressive", "long", "comment"):
        (folder / f"{name}.jpg").write_bytes(hostile_images[name])
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b[2J.png")).write_bytes(b"")
    config = quick.model_copy(update={"labels_from": "text"})
    built = build(folder, tmp_path / "library", config=config)

    listed = list(csv.DictReader((built.library / "skipped.csv").read_text().splitlines()))
    texts = {row["file"] for row in listed if row["left_out"] == "text"}
    assert texts == {f"text-{name}.txt" for name in links}
    items = {row["file"] for row in listed if row["left_out"] == "item"}
    images = {f"image-{name}.png" for name in (*links, "bytes")} | {"progressive.jpg", "long.jpg", "comment.jpg"}
    assert items == images | {r"\udcff\u001b[2J.png"}
    assert verify(built.library).problems == ()
    with Library.open(built.library) as library:
        assert (library.count(), library.credit()) == (45, "")
        item = library.get("text-bytes.png")
        assert item is not None
        assert item.text == "a ÿ caption"
    written = [path.read_bytes() for path in built.library.rglob("*") if path.is_file()]
    assert [content for content in written if SECRET.encode() in content] == []


def test_what_a_build_writes_is_private(folder: Path, quick: BuildConfig, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    built = build(folder, tmp_path / "library", config=quick.model_copy(update={"labels_from": "text"}))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (built.library, *built.library.rglob("*"))}
    work = work_folder(built.library)
    modes[work] = stat.S_IMODE(work.stat().st_mode)
    assert {path: mode for path, mode in modes.items() if mode & 0o077} == {}
