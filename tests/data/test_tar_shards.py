"""Tar shards: what their members say, and what hostile ones cannot do."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from rmsh.core.errors import DataError
from rmsh.data.open import open_pairs
from rmsh.data.readers import packed_images
from rmsh.data.readers.packed_images import packed_files, read_packed


def _tar(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return path


def _link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def test_members_of_one_name_are_one_item(tmp_path: Path) -> None:
    shard = _tar(
        tmp_path / "s.tar",
        ("./0001.jpg", b"picture"),
        ("./0001.txt", b"a dog"),
        ("0002.json", b'{"caption": "a cat", "labels": ["cat"], "file_name": "../../x", "width": 3}'),
        ("0002.PNG", b"other"),
        ("0003.cls", b"7"),
        ("0003.jpg", b"third"),
    )
    origin, notes = read_packed([shard], into=tmp_path / "out")
    assert [(r.row, r.id, r.picture, r.text, r.labels) for r in origin.records] == [
        (1, "0001", "0001.jpg", "a dog", ()),
        (2, "0002", "0002.PNG", "a cat", ("cat",)),
        (3, "0003", "0003.jpg", None, ("7",)),
    ]
    assert (tmp_path / "out" / "0001.jpg").read_bytes() == b"picture"
    assert (origin.skipped, origin.unpacked, notes) == ((), True, ["1 shards, 3 items"])


def test_several_shards_keep_their_items_apart(tmp_path: Path) -> None:
    shards = [_tar(tmp_path / f"s{i}.tar", ("1.jpg", bytes(i)), ("1.txt", b"x")) for i in (1, 2)]
    assert packed_files(tmp_path) == shards
    origin, _ = read_packed(shards, into=tmp_path / "out")
    assert [(record.id, record.picture) for record in origin.records] == [("s1/1", "s1/1.jpg"), ("s2/1", "s2/1.jpg")]


@pytest.mark.parametrize(
    "name",
    ["../evil.jpg", "/tmp/evil.jpg", "a/../../evil.jpg", "C:\\evil.jpg", "..\\evil.jpg"],  # noqa: S108
)
def test_no_member_leaves_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    origin, _ = read_packed([_tar(tmp_path / "in" / "s.tar", (name, b"evil"))], into=tmp_path / "in" / "out")
    assert not origin.records
    assert "leads out of the folder" in origin.skipped[0].reason
    assert not list(tmp_path.rglob("*evil*"))


def test_links_devices_and_sparse_files_are_not_read(tmp_path: Path) -> None:
    device, sparse = tarfile.TarInfo("d.jpg"), tarfile.TarInfo("s.jpg")
    device.type = tarfile.CHRTYPE
    sparse.sparse = [(0, 1 << 40)]  # type: ignore[assignment]
    shard = _tar(tmp_path / "s.tar", _link("a.jpg", "/etc/hostname"), device, ("b.txt", b"words"))
    origin, _ = read_packed([shard], into=tmp_path / "out")
    assert [record.id for record in origin.records] == ["b"]
    assert [one.id for one in origin.skipped] == ["a", "d"]
    assert packed_images._member_problem(sparse, ".jpg") is not None


def test_a_member_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_images, "LARGEST_IMAGE", 3)
    shard = _tar(tmp_path / "s.tar", ("a.jpg", b"1234"), ("a.txt", b"words"))
    origin, _ = read_packed([shard], into=tmp_path / "out")
    assert origin.records[0].picture is None
    assert "it has 4 bytes, 3 are allowed" in origin.skipped[0].reason


@pytest.mark.parametrize(("name", "content"), [("a.json", b"{"), ("a.json", b"3"), ("a.txt", b"\xff")])
def test_a_member_that_cannot_be_read_is_listed(tmp_path: Path, name: str, content: bytes) -> None:
    origin, _ = read_packed([_tar(tmp_path / "s.tar", (name, content), ("a.jpg", b"x"))], into=tmp_path / "out")
    assert origin.records[0].text is None
    assert "cannot be read" in origin.skipped[0].reason


def test_an_item_with_a_value_of_another_type_is_listed(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("inside")
    folder.type = tarfile.DIRTYPE
    shard = _tar(tmp_path / "s.tar", folder, ("inside/1.json", b'{"text": {"en": "dog"}}'), ("inside/2.txt", b"cat"))
    origin, _ = read_packed([shard], into=tmp_path / "out")
    assert [record.id for record in origin.records] == ["inside/2"]
    assert [(one.row, one.id, one.left_out) for one in origin.skipped] == [(1, "inside/1", "item")]


def test_a_second_image_of_an_item_is_listed(tmp_path: Path) -> None:
    origin, _ = read_packed([_tar(tmp_path / "s.tar", ("a.jpg", b"1"), ("a.png", b"2"))], into=tmp_path / "out")
    assert (origin.records[0].picture, len(origin.skipped)) == ("a.jpg", 1)


def test_what_is_unpacked_is_not_written_again(tmp_path: Path) -> None:
    shard = _tar(tmp_path / "s.tar", ("a.jpg", b"1"))
    read_packed([shard], into=tmp_path / "out")
    before = (tmp_path / "out" / "a.jpg").stat().st_mtime_ns
    read_packed([shard], into=tmp_path / "out")
    assert (tmp_path / "out" / "a.jpg").stat().st_mtime_ns == before


def test_a_name_that_is_a_folder_elsewhere_is_listed(tmp_path: Path) -> None:
    shard = _tar(tmp_path / "s.tar", ("a.jpg", b"1"), ("a.jpg/b.jpg", b"2"))
    origin, _ = read_packed([shard], into=tmp_path / "out")
    assert "cannot be written" in origin.skipped[0].reason


def test_a_compressed_or_cut_shard_is_refused(tmp_path: Path) -> None:
    whole = _tar(tmp_path / "s.tar", ("a.jpg", b"1" * 5000))
    cut = tmp_path / "cut.tar"
    cut.write_bytes(whole.read_bytes()[:3000])
    for path in (_tar(tmp_path / "z.tar", ("a.jpg", b"1"), mode="w:gz"), cut):
        with pytest.raises(DataError, match="cannot be read as an uncompressed tar"):
            read_packed([path], into=tmp_path / "out")


def test_open_pairs_opens_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMSH_CACHE", str(tmp_path / "cache"))
    _tar(tmp_path / "s.tar", ("a.jpg", b"1"), ("a.txt", b"x"))
    opened = open_pairs(tmp_path / "s.tar")
    assert opened.origin is not None
    assert (opened.origin.folder / "a.jpg").is_file()
    assert opened.origin.folder.is_relative_to(tmp_path / "cache")
    assert open_pairs(tmp_path).pairs.ids.tolist() == ["a"]


def test_unpacked_images_are_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    read_packed([_tar(tmp_path / "s.tar", ("a.jpg", b"1"))], into=tmp_path / "cache" / "out")
    assert (tmp_path / "cache" / "out").stat().st_mode & 0o077 == 0
