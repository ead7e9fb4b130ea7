"""Building a library: what it contains, how a build is resumed, what is refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from rmsh.builder import BuildConfig, Built, build
from rmsh.builder.build import estimate, work_folder
from rmsh.builder.source import read_raw
from rmsh.core.errors import DataError, InputError, RmshError
from rmsh.core.files import cache_folder
from rmsh.core.locks import try_lock
from rmsh.core.progress import Progress
from rmsh.library import Library
from rmsh.library.verify import verify


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_library_holds_all_items_with_both_codes(built: Built) -> None:
    assert verify(built.library).problems == ()
    with Library.open(built.library) as library:
        item = library.get("7.png")
        assert library.count() == 40
        assert item is not None
        assert (item.text, item.labels) == ("a green circle number 7", ("circle", "green"))
        assert len(library.codes(["7.png"], "image")) == 1
        assert len(library.codes(["7.png"], "text")) == 1
        path = library.picture_path(item)
        assert path is not None
        assert path.is_file()


def test_the_report_has_scores_of_held_out_items_beside_chance(built: Built) -> None:
    report = json.loads((built.library / "report.json").read_text())
    assert (report["counts"]["held_out"], report["counts"]["learned_from"]) == (4, 36)
    assert set(report["scores"]) == {"i2t", "t2i", "i2i", "t2t"}
    assert report["scores"]["t2i"]["queries"] == 4
    assert 0 < report["scores"]["t2i"]["ndcg"]["chance"] < 1
    assert report["delta"]["reason"]
    assert (built.library / "report.html").read_text().count('<img src="data:image/jpeg') > 20


def test_a_second_build_of_the_same_items_does_nothing(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    first = build(drawings, tmp_path / "library", config=quick)
    sentences: list[str] = []
    again = build(drawings, tmp_path / "library", config=quick, tell=sentences.append)
    assert (first.is_new, again.is_new) == (True, False)
    assert again.report == first.report
    assert "up to date" in sentences[-1]


class StopAt:
    """Stops a build at a stage, as Ctrl-C would."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def __call__(self, progress: Progress) -> None:
        if progress.stage.startswith(self.stage):
            raise KeyboardInterrupt


@pytest.mark.parametrize("stage", ["encode images", "train", "evaluate", "add items"])
def test_an_interrupted_build_is_resumed(drawings: Path, quick: BuildConfig, tmp_path: Path, stage: str) -> None:
    out = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        build(drawings, out, config=quick, on_progress=StopAt(stage))
    assert not out.exists()
    sentences: list[str] = []
    build(drawings, out, config=quick, tell=sentences.append)
    assert verify(out).problems == ()
    with Library.open(out) as library:
        assert library.count() == 40
    assert ("train: already done" in sentences) == (stage in ("evaluate", "add items"))


def test_the_user_is_informed_of_time_space_and_delta(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    sentences: list[str] = []
    build(drawings, tmp_path / "library", config=quick, tell=sentences.append)
    assert any("40 items with 40 images and 40 texts: about 1 min and" in line for line in sentences)
    assert any("differ in delta = " in line for line in sentences)


def test_bad_items_are_listed_with_their_rows_and_the_rest_is_built(
    drawings: Path, quick: BuildConfig, tmp_path: Path
) -> None:
    (drawings / "3.png").write_bytes(b"no picture")
    (drawings / "5.png").unlink()
    Image.new("1", (20_000, 20_000)).save(drawings / "6.png")  # a bomb: 400 million pixels in 50 kB
    with (drawings / "metadata.csv").open("a") as file:
        file.write("0.png,again,red\n1.png;oops\n,,\n")
    built = build(drawings, tmp_path / "library", config=quick)
    found = {(row["row"], row["left_out"]) for row in _rows(built.library / "skipped.csv")}
    assert found == {
        ("5", "picture"),
        ("7", "picture"),
        ("8", "picture"),
        ("42", "item"),
        ("43", "item"),
        ("44", "item"),
    }
    assert built.report["counts"]["items"] == 40
    assert built.report["counts"]["pictures"] == 37
    with Library.open(built.library) as library:
        item = library.get("3.png")
        assert item is not None
        assert (item.picture, item.text) == (None, "a red square number 3")


def test_strict_fails_on_an_unreadable_image(drawings: Path, tmp_path: Path, quick: BuildConfig) -> None:
    (drawings / "3.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"metadata.csv, row 5 \(picture"):
        build(drawings, tmp_path / "library", config=quick.model_copy(update={"strict": True}))


def test_images_of_every_kind_are_read(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    frames = [Image.new("P", (32, 32), colour) for colour in (1, 2)]
    frames[0].save(drawings / "0.png", "GIF", save_all=True, append_images=frames[1:])
    Image.new("CMYK", (32, 32)).save(drawings / "1.png", "JPEG")
    Image.new("I;16", (32, 32)).save(drawings / "2.png", "TIFF")
    Image.new("RGBA", (32, 32)).save(drawings / "4.png", "PNG")
    assert build(drawings, tmp_path / "library", config=quick).report["skipped"]["count"] == 0


def test_items_with_only_a_text_or_only_an_image_are_found(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    with (drawings / "metadata.csv").open("a") as file:
        file.write(",only words of a red thing,red\n")
    shutil.copy(drawings / "0.png", drawings / "alone.png")
    with (drawings / "metadata.csv").open("a") as file:
        file.write("alone.png,,red\n")
    built = build(drawings, tmp_path / "library", config=quick)
    with Library.open(built.library) as library:
        assert len(library.codes(["metadata.csv:42"], "image")) == 0
        assert len(library.codes(["metadata.csv:42"], "text")) == 1
        assert len(library.codes(["alone.png"], "text")) == 0
        assert len(library.codes(["alone.png"], "image")) == 1


def test_images_and_texts_that_share_no_item_are_learned_from(
    drawings: Path, quick: BuildConfig, tmp_path: Path
) -> None:
    table = drawings / "metadata.csv"
    rows = _rows(table)
    alone = [(row["file_name"], "", row["labels"]) for row in rows[:20]]
    alone += [("", row["text"], row["labels"]) for row in rows[20:]]
    table.write_text("file_name,text,labels\n" + "".join(",".join(row) + "\n" for row in alone))
    for row in rows[20:]:
        (drawings / row["file_name"]).unlink()
    built = build(drawings, tmp_path / "library", config=quick)
    assert (built.report["counts"]["learned_from"], built.report["scores"]) == (40, {})
    assert "fewer than 30 items" in built.report["no_scores"]
    with pytest.raises(DataError, match=r"0 of 40 items have .*labels.*rmsh"):
        build(drawings, tmp_path / "other", config=quick.model_copy(update={"method": "rmsh"}))


@pytest.mark.parametrize("count", [5, 12])
def test_a_very_small_folder_is_built_without_scores(
    tmp_path: Path, quick: BuildConfig, drawings: Path, count: int
) -> None:
    table = drawings / "metadata.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[: count + 1]))
    for path in drawings.glob("*.png"):
        if int(path.stem) >= count:
            path.unlink()
    report = build(drawings, tmp_path / "library", config=quick).report
    assert (report["counts"]["items"], report["scores"]) == (count, {})
    assert "fewer than 30 items" in report["no_scores"]
    assert "fewer than 30 items" in (tmp_path / "library" / "report.html").read_text()


def test_shards_give_a_library_that_keeps_its_own_images(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    shard = tmp_path / "shard.tar"
    with tarfile.open(shard, "w") as archive:
        for row in _rows(drawings / "metadata.csv"):
            archive.add(drawings / row["file_name"], row["file_name"])
            cells = json.dumps({"caption": row["text"], "labels": row["labels"]}).encode()
            info = tarfile.TarInfo(row["file_name"].replace(".png", ".json"))
            info.size = len(cells)
            archive.addfile(info, io.BytesIO(cells))
    built = build(shard, tmp_path / "library", config=quick)
    shutil.rmtree(cache_folder() / "unpacked")
    with Library.open(built.library) as library:
        item = library.get("7")
        assert item is not None
        assert library.picture_path(item) == (built.library / "pictures" / "7.png").resolve()
        assert (built.library / "pictures" / "7.png").is_file()


def test_a_library_of_other_options_is_replaced_only_on_request(
    built: Built, drawings: Path, quick: BuildConfig, tmp_path: Path
) -> None:
    longer = quick.model_copy(update={"bits": 24})
    with pytest.raises(InputError, match="--overwrite"):
        build(drawings, built.library, config=longer)
    assert build(drawings, built.library, config=longer, overwrite=True).is_new
    with Library.open(built.library) as library:
        assert library.generation().bits == 24


def test_a_folder_that_is_no_library_is_never_replaced(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis .*not a library"):
        build(drawings, tmp_path / "thesis", config=quick, overwrite=True)


def test_an_empty_folder_may_be_filled(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    assert build(drawings, tmp_path / "library", config=quick).is_new


def test_two_builds_of_one_library_do_not_mix(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    work = work_folder(tmp_path / "library")
    with try_lock(work / "build.claim"), pytest.raises(RmshError, match="Another process is building"):
        build(drawings, tmp_path / "library", config=quick)


def test_a_disk_without_space_is_refused_before_anything(
    drawings: Path, quick: BuildConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=1 << 20))
    with pytest.raises(RmshError, match="has 1 MB free"):
        build(drawings, tmp_path / "library", config=quick)


def test_a_delta_set_by_the_user_is_used_and_reported(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    config = quick.model_copy(update={"method": "rmsh", "options": {**quick.options, "delta": 5}})
    report = build(drawings, tmp_path / "library", config=config).report
    assert report["delta"] == {"asked": True, "delta": 5, "reason": "set by the user."}


def test_a_changed_label_trains_again_but_encodes_nothing(drawings: Path, quick: BuildConfig, tmp_path: Path) -> None:
    build(drawings, tmp_path / "library", config=quick)
    table = drawings / "metadata.csv"
    table.write_text(table.read_text().replace("red;square", "crimson;square"))
    stages: set[str] = set()

    def note(progress: Progress) -> None:
        stages.add(progress.stage)

    build(drawings, tmp_path / "library", config=quick, overwrite=True, on_progress=note)
    assert "train" in stages
    assert "encode images" not in stages


def test_more_items_take_more_time_and_space(drawings: Path) -> None:
    source = read_raw(drawings, strict=True)
    few, many = estimate(source.take(np.arange(10))), estimate(source)
    assert few < many
    assert few[1] < many[1]
    copied = replace(source, origin=replace(source.origin, unpacked=True))
    assert estimate(copied)[1] == many[1] + sum(file.stat().st_size for file in drawings.glob("*.png"))


def test_a_build_beyond_the_free_space_is_refused(
    drawings: Path, quick: BuildConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 20))
    with pytest.raises(RmshError, match="5 MB free"):
        build(drawings, tmp_path / "library", config=quick)
    assert not (tmp_path / "library").exists()
