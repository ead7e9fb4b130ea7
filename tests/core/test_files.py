"""Files: whole or not at all, and nothing is left behind."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from rmsh.core.errors import DataError, FormatError
from rmsh.core.files import atomic, checked_format, open_regular, read_json, sha256, write_json, write_text


def test_json_is_read_as_it_was_written(tmp_path: Path) -> None:
    value = {"name": "Käse", "bits": [1, 2], "rate": 0.5, "none": None}
    write_json(tmp_path / "new" / "folder" / "a.json", value)
    assert read_json(tmp_path / "new" / "folder" / "a.json") == value


def _interrupted_write(path: Path) -> None:
    with atomic(path) as file:
        file.write(b"half of the n")
        raise KeyboardInterrupt


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(KeyboardInterrupt):
        _interrupted_write(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_file_appears_only_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with atomic(path) as file:
        file.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes of this kind")
@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o644), (0o700, 0o600), (0o777, 0o644)])
def test_a_written_file_is_as_private_as_its_folder(folder: int, file: int, *, tmp_path: Path) -> None:
    tmp_path.chmod(folder)
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "deep" / "ours.txt", "")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("deep", "deep/ours.txt")]
    assert modes == [folder & 0o755, file]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes and devices among its files")
def test_only_regular_files_inside_a_folder_are_opened(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    write_text(tmp_path / "secret.txt", "secret")
    write_text(inside / "a.txt", "text")
    os.mkfifo(inside / "pipe")
    (inside / "out.txt").symlink_to("../secret.txt")
    (inside / "zero").symlink_to("/dev/zero")
    (inside / "link.txt").symlink_to("a.txt")
    for name in ("a.txt", "link.txt"):
        with open_regular(inside / name, inside=inside, most=4) as file:
            assert file.read() == b"text"
    with pytest.raises(DataError, match="4 bytes, 3 are allowed"):
        open_regular(inside / "a.txt", most=3)
    for path, found in {"pipe": "regular", ".": "regular", "out.txt": "leads out", "zero": "leads out"}.items():
        with pytest.raises(DataError, match=found):
            open_regular(inside / path, inside=inside)
    with pytest.raises(DataError, match="regular"):
        open_regular(Path("/dev/zero"))
    with pytest.raises(FileNotFoundError):
        open_regular(inside / "gone")


def test_numbers_that_json_cannot_express_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b'{"half": ', b"\xff\xfe"], ids=["cut off", "not UTF-8"])
def test_a_damaged_json_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"a\.json"):
        read_json(path)


def test_sha256_equals_the_digest_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"rmsh" * 1000)
    assert sha256(path) == hashlib.sha256(b"rmsh" * 1000).hexdigest()


@pytest.mark.parametrize("version", [0, 3, "1", None])
def test_a_newer_version_is_refused_and_older_ones_are_read(version: object) -> None:
    rules = {"name": "rmsh", "version": 2, "hint": "recreate it"}
    assert checked_format({"format": "rmsh", "version": 1}, "x", **rules)["version"] == 1
    with pytest.raises(FormatError, match=f"x has version {version!r} of 'rmsh'.*version 2"):
        checked_format({"format": "rmsh", "version": version}, "x", **rules)


@pytest.mark.parametrize("content", [None, [], {}, {"format": "other", "version": 1}])
def test_content_of_another_format_is_refused_with_what_to_do(content: object) -> None:
    with pytest.raises(FormatError, match="x is not of the format 'rmsh'; recreate it"):
        checked_format(content, "x", name="rmsh", version=1, hint="recreate it")
