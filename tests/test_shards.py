"""Shards: what they contain, that they are resumed and equal for all executors, and what reads them."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from rmsh import __version__
from rmsh.builder.add import load_shards
from rmsh.cli.main import run
from rmsh.core.errors import CodesError, DataError, FormatError, InputError, RmshError
from rmsh.core.locks import try_lock
from rmsh.core.progress import Progress
from rmsh.features import executors
from rmsh.features.executors import Processes
from rmsh.library import Library
from rmsh.model import Model, load
from rmsh.models import wheel_model
from rmsh.shards import Shards, encode_shards, is_shards

COLOURS = {"black": "off", "red": "red", "green": "green", "blue": "blue", "yellow": "red and green"}
COLOURS |= {"magenta": "red and blue", "cyan": "green and blue", "white": "red, green and blue"}


@pytest.fixture
def model(joint_colours: Path) -> Model:
    """A model whose codes, vectors and features tell how red, green and blue an image is."""
    return load(joint_colours / "model")


def _png(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "lime" if colour == "green" else colour).save(file, "PNG")
    return file.getvalue()


def _tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def tars(tmp_path: Path) -> Path:
    """Two tar shards of four images with texts and labels; the last image of the second is damaged, one has no text."""
    folder = tmp_path / "tars"
    folder.mkdir()
    for number in range(2):
        members: dict[str, bytes] = {}
        for row, colour in enumerate([*COLOURS][4 * number : 4 * number + 4]):
            members[f"{row}.png"] = b"damaged" if (number, row) == (1, 3) else _png(colour)
            if (number, row) != (0, 3):
                members[f"{row}.txt"] = f"light that is {COLOURS[colour]}".encode()
            members[f"{row}.cls"] = colour.encode()
        _tar(folder / f"part-{number}.tar", members)
    return folder


def _hashes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".claim")
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_shard_has_items_codes_vectors_and_features(model: Model, tars: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    manifest, skipped = encode_shards(model, str(tars), str(out))
    assert [(s["name"], s["items"]) for s in manifest["shards"]] == [("part-0", 4), ("part-1", 4)]
    assert manifest["items"] == 8
    assert [(one.file, one.id, one.left_out) for one in skipped] == [("part-1.tar", "part-1/3", "picture")]
    assert str(tmp_path) not in skipped[0].reason
    rows = pq.read_table(out / "part-0.parquet").to_pylist()
    red, blue = rows[1], rows[3]
    assert (red["id"], red["text"], red["picture"]) == ("part-0/1", "light that is red", "part-0/1.png")
    assert red["labels"] == ["red"]
    assert red["image_features"] == [1, 0, 0]
    expected = model.encode(np.array([[1, 0, 0]], np.float32), "image").packed
    assert red["image_code"] == red["text_code"] == bytes(expected[0])
    assert len(red["image_vector"]) == 3
    assert (blue["text"], blue["text_code"], blue["text_vector"], blue["text_features"]) == (None, None, None, None)
    damaged = pq.read_table(out / "part-1.parquet").to_pylist()[3]
    assert (damaged["picture"], damaged["image_code"], damaged["image_features"]) == (None, None, None)
    assert damaged["text_code"] is not None


def test_the_manifest_is_written_last_and_every_shard_has_its_hash(model: Model, tars: Path, tmp_path: Path) -> None:
    out, reports = tmp_path / "out", list[Progress]()

    def look(progress: Progress) -> None:
        reports.append(progress)
        assert not is_shards(out)

    manifest, _ = encode_shards(model, str(tars), str(out), on_progress=look)
    assert [(report.done, report.total, report.unit) for report in reports] == [(1, 2, "shard"), (2, 2, "shard")]
    for shard in manifest["shards"]:
        assert hashlib.sha256((out / f"{shard['name']}.parquet").read_bytes()).hexdigest() == shard["sha256"]
    assert json.loads((out / "manifest.json").read_text()) == manifest


def test_an_interrupted_job_goes_on_and_other_input_or_features_are_encoded_again(
    model: Model, tars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, encoded = str(tmp_path / "out"), list[str]()

    def counted(*arguments: Any, **options: Any) -> Any:
        for name, facts in executors.run(*arguments, **options):
            encoded.append(name)
            yield name, facts

    monkeypatch.setattr("rmsh.shards.run", counted)
    encode_shards(model, str(tars), out)
    before = _hashes(tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()
    (tmp_path / "out" / "part-1.json").unlink()
    encode_shards(model, str(tars), out)
    assert encoded == ["part-0", "part-1", "part-1"]
    assert _hashes(tmp_path / "out") == before
    _tar(tars / "part-0.tar", {"0.png": _png("red")})
    encode_shards(model, str(tars), out)
    assert encoded[3:] == ["part-0"]
    encode_shards(model, str(tars), out, features=False)
    assert encoded[4:] == ["part-0", "part-1"]
    assert "image_features" not in pq.read_schema(tmp_path / "out" / "part-0.parquet").names


def test_items_of_a_folder_are_divided(model: Model, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for colour in COLOURS:
        (folder / f"{colour}.png").write_bytes(_png(colour))
        (folder / f"{colour}.txt").write_text(f"light that is {COLOURS[colour]}")
    manifest, _ = encode_shards(model, str(folder), str(tmp_path / "out"), size=3)
    assert [s["name"] for s in manifest["shards"]] == ["items-000000000", "items-000000003", "items-000000006"]
    assert [s["items"] for s in manifest["shards"]] == [3, 3, 2]
    names = [
        one.item.id for number in range(3) for block in Shards.open(tmp_path / "out").read(number) for one in block
    ]
    assert names == sorted(f"{colour}.png" for colour in COLOURS)


def test_urls_give_the_same_shards_as_paths(model: Model, tars: Path, tmp_path: Path) -> None:
    encode_shards(model, str(tars), str(tmp_path / "by path"))
    encode_shards(model, f"file://{tars}", f"file://{tmp_path}/by_url")
    paths, urls = ({n: h for n, h in _hashes(tmp_path / f).items() if ".parquet" in n} for f in ("by path", "by_url"))
    assert paths == urls
    assert Shards.open(f"file://{tmp_path}/by_url").model().fingerprint == model.fingerprint
    manifest, _ = encode_shards(model, f"file://{tars}/part-1.tar", f"file://{tmp_path}/one")
    assert [shard["name"] for shard in manifest["shards"]] == ["part-1"]
    with pytest.raises(DataError, match=r"has no \.tar or \.parquet"):
        encode_shards(model, f"file://{tmp_path}/by_url/model", f"file://{tmp_path}/two")


def test_an_input_shard_without_usable_items_is_empty(model: Model, tmp_path: Path) -> None:
    (tmp_path / "tars").mkdir()
    _tar(tmp_path / "tars" / "a.tar", {"0.json": b"[]"})
    _tar(tmp_path / "tars" / "b.tar", {"0.png": _png("red")})
    manifest, skipped = encode_shards(model, str(tmp_path / "tars"), str(tmp_path / "out"))
    assert [shard["items"] for shard in manifest["shards"]] == [0, 1]
    assert [one.file for one in skipped] == ["a.tar"]
    assert sum(len(block) for block in Shards.open(tmp_path / "out").read(0)) == 0


def test_shards_of_another_model_are_not_mixed(model: Model, tars: Path, tmp_path: Path, new_colours: Path) -> None:
    encode_shards(model, str(tars), str(tmp_path / "out"))
    other = load(new_colours)
    with pytest.raises(InputError, match=f"{model.fingerprint}, not {other.fingerprint}"):
        encode_shards(other, str(tars), str(tmp_path / "out"))


def test_two_processes_do_not_encode_into_one_folder(model: Model, tars: Path, tmp_path: Path) -> None:
    with try_lock(tmp_path / "out" / "encode.claim"), pytest.raises(RmshError, match="Another process"):
        encode_shards(model, str(tars), str(tmp_path / "out"))


def test_names_of_shards_are_different_and_plain(model: Model, tars: Path, tmp_path: Path) -> None:
    shutil.copy(tars / "part-0.tar", tars / "part-0.TAR")
    with pytest.raises(DataError, match="different names"):
        encode_shards(model, str(tars), str(tmp_path / "out"))


def test_a_model_that_was_trained_on_features_is_refused(model: Model, tars: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the images are raw, but the model was trained on features"):
        encode_shards(model.with_encoders({}), str(tars), str(tmp_path / "out"))


def test_features_have_no_shards(model: Model, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"contains features.*codes\.npz"):
        encode_shards(model, "generated:20", str(tmp_path / "out"))


def test_unfinished_damaged_and_foreign_shards_are_refused(model: Model, tars: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(FormatError, match=r"no readable manifest\.json"):
        Shards.open(out)
    manifest, _ = encode_shards(model, str(tars), str(out))
    content = bytearray((out / "part-0.parquet").read_bytes())
    content[100] ^= 1
    (out / "part-0.parquet").write_bytes(content)
    with pytest.raises(FormatError, match=r"part-0\.parquet does not match its SHA-256"):
        list(Shards.open(out).read(0))
    (out / "part-1.parquet").unlink()
    with pytest.raises(FormatError, match=r"part-1\.parquet.* cannot be read"):
        list(Shards.open(out).read(1))
    manifest["shards"][0]["name"] = "../part-0"
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FormatError, match="unusual names"):
        Shards.open(out)
    (out / "manifest.json").write_text('{"format": "rmsh-shards", "version": 2}')
    with pytest.raises(FormatError, match="version 2"):
        Shards.open(out)


def test_a_worker_that_does_not_see_the_output_says_so(tmp_path: Path) -> None:
    request = {"rmsh": __version__, "work": "rmsh.shards:check_worker"}
    task = {"out": str(tmp_path / "elsewhere"), "model": "0"}
    assert "elsewhere is not there" in json.loads(executors.answer(json.dumps(request | {"task": task})))["error"]


def test_a_worker_with_other_weights_refuses(tars: Path, tmp_path: Path) -> None:
    wheel = wheel_model()
    changed = {m: dict(e) | {"fingerprint": "0"} for m, e in wheel.encoders.items()}
    with pytest.raises(FormatError, match=r"0, but .* is installed"):
        encode_shards(wheel.with_encoders(changed), str(tars), str(tmp_path / "out"))


@pytest.mark.slow
def test_one_process_and_two_processes_write_the_same_bytes(tars: Path, tmp_path: Path) -> None:
    wheel, two = wheel_model(), Processes(2)
    encode_shards(wheel, str(tars), str(tmp_path / "one"))
    encode_shards(wheel, str(tars), str(tmp_path / "two"), executor=two)
    two.close()
    assert _hashes(tmp_path / "one") == _hashes(tmp_path / "two")


def test_a_library_is_loaded_and_loaded_again_only_for_new_items(model: Model, tars: Path, tmp_path: Path) -> None:
    encode_shards(model, str(tars), str(tmp_path / "out"))
    shards, folder = Shards.open(tmp_path / "out"), tmp_path / "library"
    assert load_shards(shards, folder, images=tmp_path) == (8, 8)
    with Library.open(folder, writable=True) as library:
        query = model.encode(np.array([[1, 0, 0]], np.float32), "image")
        ((hit,),) = library.search(query, 1, to="image", model=model.fingerprint)
        assert (hit.item.id, hit.item.labels, hit.distance) == ("part-0/1", ("red",), 0)
        vectors = library.codes(["part-0/1", "part-0/2"], "text").vectors
        assert vectors is not None
        assert vectors.shape == (2, 3)
        library.remove(["part-0/1", "part-1/0"])
    assert load_shards(shards, folder) == (2, 8)
    assert load_shards(shards, folder) == (0, 8)


def test_a_library_of_another_model_is_not_mixed(model: Model, tars: Path, tmp_path: Path, new_colours: Path) -> None:
    encode_shards(model, str(tars), str(tmp_path / "out"))
    Library.create(tmp_path / "library", load(new_colours)).close()
    with pytest.raises(CodesError):
        load_shards(Shards.open(tmp_path / "out"), tmp_path / "library")


def test_the_commands_encode_and_load(
    model: Model, tars: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "model")
    out, library = str(tmp_path / "out"), str(tmp_path / "library")
    assert run(["encode", str(tmp_path / "model"), str(tars), "--out", out, "--no-features", "--json"]) == 0
    told = capsys.readouterr()
    expected = {"codes": out, "items": 8, "bits": 12, "model": model.fingerprint, "shards": 2, "skipped": 1}
    assert json.loads(told.out) == expected
    assert "1 picture was left out" in told.err
    assert run(["library", "load", out, "--out", library]) == 0
    assert "8 items added, 8 in total" in capsys.readouterr().out
    assert run(["library", "load", str(tars), "--out", library]) == 2
    assert "manifest.json" in capsys.readouterr().err
    assert run(["encode", str(tmp_path / "model"), str(tars), "--out", out, "--executor", "x"]) == 2
