"""`rmsh sync`, `rmsh duplicates` and `rmsh library relocate`, with real image files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image, ImageDraw

from rmsh.builder import build
from rmsh.cli import build as commands
from rmsh.cli.main import run

Capture = pytest.CaptureFixture[str]


def _draw(path: Path, number: int, *, size: tuple[int, int] = (120, 90)) -> None:
    path.parent.mkdir(exist_ok=True)
    image = Image.new("RGB", (120, 90), ("red", "green", "blue", "white")[number % 4])
    pen = ImageDraw.Draw(image)
    for place in range(6):
        x, y = (37 * number + 53 * place) % 100, (61 * number + 29 * place) % 70
        pen.ellipse((x, y, x + 15 + 3 * place, y + 12 + 2 * number), fill=("black", "yellow", "cyan")[place % 3])
    image.resize(size).save(path, quality=90)


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number in range(6):
        _draw(folder / "images" / f"{number}.jpg", number)
    shutil.copy(folder / "images" / "1.jpg", folder / "images" / "copy.jpg")
    _draw(folder / "images" / "small.jpg", 2, size=(60, 45))
    build(folder / "images", folder / "library")
    return folder


@pytest.fixture
def folder(_made: Path, tmp_path: Path) -> Path:
    """A folder with images and their library, which knows where they are."""
    shutil.copytree(_made, tmp_path, dirs_exist_ok=True)
    assert run(["library", "relocate", str(tmp_path / "library"), str(tmp_path / "images"), "--quiet"]) == 0
    return tmp_path


def _json(capsys: Capture, *words: str | Path) -> dict[str, object]:
    capsys.readouterr()
    assert run([*map(str, words), "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return dict(json.loads(out))


def test_sync_tells_what_it_did(folder: Path, capsys: Capture) -> None:
    _draw(folder / "images" / "new.jpg", 9)
    (folder / "images" / "0.jpg").unlink()
    done = _json(capsys, "sync", folder / "library")
    assert done == {
        "added": 1, "changed": 0, "moved": 0, "removed": 0, "missing": ["0.jpg"], "skipped": 0, "items": 9,
    }  # fmt: skip
    assert run(["sync", str(folder / "library"), "--prune"]) == 0
    assert "1 removed; 8 items" in capsys.readouterr().out
    assert run(["sync", str(folder / "library")]) == 0
    assert "nothing has changed; 8 items" in capsys.readouterr().out


def test_sync_lists_what_it_skips(folder: Path, capsys: Capture) -> None:
    (folder / "images" / "broken.jpg").write_bytes(b"x")
    assert run(["sync", str(folder / "library"), "--skipped", str(folder / "skipped.csv")]) == 0
    assert "1 item was left out" in capsys.readouterr().err
    assert "broken.jpg" in (folder / "skipped.csv").read_text()


def test_a_folder_that_is_gone_is_one_sentence(folder: Path, capsys: Capture) -> None:
    shutil.rmtree(folder / "images")
    assert run(["sync", str(folder / "library")]) == 2
    assert "nothing was changed" in capsys.readouterr().err


def test_watch_follows_changes_until_it_is_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            _draw(folder / "images" / "new.jpg", 9)
        elif len(pauses) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(commands, "time", SimpleNamespace(sleep=pause))
    assert run(["sync", str(folder / "library"), "--watch"]) == 130
    out, err = capsys.readouterr()
    told = [line.partition(": ")[2] for line in out.splitlines()]
    assert told == ["nothing has changed; 8 items", "1 added; 9 items"]
    assert err.count("Ctrl-C") == 1


def test_duplicates_are_listed_with_the_best_first(folder: Path, capsys: Capture) -> None:
    found = _json(capsys, "duplicates", folder / "library", "--csv", folder / "groups.csv")
    assert found == {
        "groups": [{"kind": "copies", "ids": ["1.jpg", "copy.jpg"]}, {"kind": "similar", "ids": ["2.jpg", "small.jpg"]}]
    }
    assert (folder / "groups.csv").read_text().splitlines()[:3] == [
        "group,kind,place,id",
        "1,copies,1,1.jpg",
        "1,copies,2,copy.jpg",
    ]


def test_relocate_counts_the_images(folder: Path, capsys: Capture) -> None:
    (folder / "images").rename(folder / "elsewhere")
    (folder / "elsewhere" / "0.jpg").unlink()
    found = _json(capsys, "library", "relocate", folder / "library", folder / "elsewhere")
    assert (found["present"], found["images"]) == (7, 8)
    (folder / "empty").mkdir()
    assert run(["library", "relocate", str(folder / "library"), str(folder / "empty")]) == 2
    assert "none of the 8 images" in capsys.readouterr().err


def test_add_takes_folders_and_images(folder: Path, capsys: Capture) -> None:
    _draw(folder / "trip" / "10.jpg", 10)
    _draw(folder / "other" / "11.jpg", 11)
    done = _json(capsys, "add", folder / "library", folder / "trip", folder / "other" / "11.jpg")
    assert done == {"added": 2, "there": 0, "skipped": 0, "items": 10}
    found = _json(capsys, "library", "info", folder / "library")
    assert found["folders"] == {
        "": str(folder / "images"), "11.jpg": str(folder / "other" / "11.jpg"), "trip": str(folder / "trip"),
    }  # fmt: skip
    assert _json(capsys, "sync", folder / "library")["items"] == 10


def test_verify_and_backup_know_images(folder: Path, capsys: Capture) -> None:
    copy = folder / "copy"
    (folder / "images" / "5.jpg").unlink()
    assert run(["library", "verify", str(folder / "library")]) == 0
    assert run(["library", "verify", str(folder / "library"), "--images"]) == 1
    assert "Missing image files (1): 5.jpg" in capsys.readouterr().out
    found = _json(capsys, "library", "backup", folder / "library", "--with-images", "--out", copy)
    assert found == {"backup": str(copy), "missing_pictures": 1}
    assert len([*copy.rglob("*.jpg")]) == 7
