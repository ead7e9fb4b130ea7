"""Builds without training: photographs that other packages carry, found by plain words with the bundled model."""

from __future__ import annotations

import importlib
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from PIL import Image

from rmsh.builder import BuildConfig, Built, build
from rmsh.builder import source as source_module
from rmsh.builder.build import WHEEL
from rmsh.builder.sync import Synced, sync
from rmsh.core.errors import ConfigError, DataError
from rmsh.library import Library
from rmsh.library.verify import verify
from rmsh.methods import create
from rmsh.models import wheel_model
from rmsh.search import Searcher

build_module = importlib.import_module("rmsh.builder.build")  # the package has a function of that name
skimage = pytest.importorskip("skimage")
PACKAGED = (
    Path(skimage.__file__).parent / "data",
    Path(sklearn.datasets.__file__).parent / "images",
)
NOT_PHOTOGRAPHS = ("motorcycle_right.png", "logo.png", "multipage", "chessboard", "phantom", "no_time", "color.png")


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The photographs in the wheels of scikit-image and scikit-learn."""
    folder = tmp_path_factory.mktemp("packaged") / "photographs"
    folder.mkdir()
    for place in PACKAGED:
        for path in [*place.glob("*.png"), *place.glob("*.jpg")]:
            if not path.name.startswith(NOT_PHOTOGRAPHS):
                shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="session")
def images_alone(photographs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Built, list[str]]:
    """A library of them, and what the build said."""
    said: list[str] = []
    return build(photographs, tmp_path_factory.mktemp("alone") / "library", tell=said.append), said


def test_images_alone_are_built_without_training(images_alone: tuple[Built, list[str]]) -> None:
    built, said = images_alone
    counts = built.report["counts"]
    assert verify(built.library).problems == ()
    assert WHEEL in said
    assert (counts["texts"], counts["learned_from"], built.report["learn_from"]) == (0, 0, "nothing")
    assert (built.report["model"], built.report["bits"]) == (wheel_model().fingerprint, 256)
    assert built.report["no_scores"]


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("a cat", "chelsea.png"),
        ("a cup of coffee", "coffee.png"),
        ("a motorcycle", "motorcycle_left.png"),
        ("a rocket launch", "rocket.jpg"),
        ("an astronaut", "astronaut.png"),
        ("an astronaut in a space suit", "astronaut.png"),
        ("a flower", "flower.jpg"),
        ("a temple", "china.jpg"),
        ("a man with a camera", "camera.png"),
    ],
)
def test_plain_words_put_the_right_photograph_first(
    images_alone: tuple[Built, list[str]], words: str, file: str
) -> None:
    with Searcher.open(images_alone[0].library) as searcher:
        (hit,) = searcher.search(searcher.text(words), 1, to="image")
        assert hit.item.picture == file


def test_few_captions_are_scored_by_recall_and_their_words_are_filters(photographs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "captioned"
    folder.mkdir()
    for number, path in enumerate(sorted(photographs.iterdir())):
        shutil.copy(path, folder)
        (folder / f"{path.stem}.txt").write_text(f"{'a photograph' if number % 3 else 'an image'} of {path.stem}")
    said: list[str] = []
    report = build(folder, tmp_path / "library", tell=said.append).report
    assert WHEEL in said
    assert set(report["recall"]["t2i"]) == {"recall@1", "recall@10", "queries", "items"}
    assert report["scores"] == {}
    assert "image" in report["classes"]


@pytest.mark.parametrize("options", [{"bits": 64}, {"text_encoder": "bag-of-words"}, {"method": "rmsh"}])
def test_images_alone_need_the_default_model(photographs: Path, tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(DataError, match="no item has a label or a text"):
        build(photographs, tmp_path / "library", config=BuildConfig.parse(options))
    with pytest.raises(ConfigError, match="efficientnet-lite0, minilm"):
        build(photographs, tmp_path / "library", config=BuildConfig.parse({**options, "learn_from": "nothing"}))


def test_enough_captions_without_labels_are_learned_from_as_pairs(
    drawings: Path, quick: BuildConfig, tmp_path: Path
) -> None:
    table = drawings / "metadata.csv"
    table.write_text("\n".join(line.rpartition(",")[0] for line in table.read_text().splitlines()))
    said: list[str] = []
    report = build(drawings, tmp_path / "library", config=quick, tell=said.append).report
    assert report["learn_from"] == "pairs"
    assert (report["scores"], report["delta"]) == ({}, {})  # mined classes are not judged by themselves
    assert (report["recall"]["t2i"]["queries"], report["recall"]["t2i"]["items"]) == (4, 40)
    assert 0 <= report["recall"]["t2i"]["recall@1"]["value"] <= report["recall"]["t2i"]["recall@10"]["value"] <= 1
    assert report["recall"]["t2i"]["recall@10"]["chance"] == 0.25
    assert report["counts"]["classes"] > 0
    assert any("trained on the pairs of 36 items" in line for line in said)
    mined = quick.model_copy(update={"learn_from": "labels"})
    assert build(drawings, tmp_path / "mined", config=mined).report["learn_from"] == "labels"


def test_too_few_pairs_to_hold_any_out_are_not_learned_from(
    drawings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, read = BuildConfig.parse({"labels_from": "text"}), source_module.read_source
    assert read(drawings, config, work=tmp_path / "work").learn_from == "pairs"
    assert read(drawings, BuildConfig.parse({}), work=tmp_path / "work").learn_from == "labels"
    monkeypatch.setattr(source_module, "LEAST_ITEMS", 41)
    assert read(drawings, config, work=tmp_path / "work").learn_from == "nothing"


def test_photographs_that_the_model_of_the_wheel_knows_need_no_training(coco66k_root: Path, tmp_path: Path) -> None:
    texts = dict(line.split("\t")[::2] for line in (coco66k_root / "pairs.tsv").read_text().splitlines())
    with tarfile.open(coco66k_root / "images.tar") as tar:
        members = [member for member in tar if member.isfile()][:40]
        tar.extractall(tmp_path / "photographs", members, filter="data")
    for path in (tmp_path / "photographs").rglob("*.jpg"):
        path.with_suffix(".txt").write_text(texts[str(int(path.stem))])
    report = build(tmp_path / "photographs", tmp_path / "library").report
    assert (report["learn_from"], report["counts"]["learned_from"]) == ("nothing", 0)
    assert report["recall"]["t2i"]["queries"] == 40  # all are scored, because none was trained on
    assert report["recall"]["t2i"]["recall@10"]["value"] > 0.9


@pytest.mark.parametrize(("recall", "used"), [((0.1, 0.4), "pairs"), ((0.4, 0.1), "nothing"), ((0.6, 0.0), "nothing")])
def test_the_model_that_finds_more_held_out_items_is_used(
    recall: tuple[float, float], used: str, *, drawings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, measured, said = drawings / "metadata.csv", list(recall), list[str]()
    table.write_text("\n".join(line.rpartition(",")[0] for line in table.read_text().splitlines()))
    monkeypatch.setattr(build_module, "_mean_recall", lambda *_: measured.pop(0))
    monkeypatch.setattr(build_module, "create", lambda name, **o: create(name, epochs=1, hidden=16, **o))
    report = build(drawings, tmp_path / "library", tell=said.append).report
    assert report["learn_from"] == used
    assert any("trained on the pairs" in line for line in said) == (recall[0] < build_module.KNOWN)
    assert any("0.100" in line and "0.400" in line for line in said) == (recall == (0.4, 0.1))


def test_texts_in_which_no_word_recurs_are_learned_from_without_filters(quick: BuildConfig, tmp_path: Path) -> None:
    for number, word in enumerate(["dog", "cat", "sea", "sky"]):
        Image.fromarray(np.full((8, 8, 3), 60 * number, np.uint8)).save(tmp_path / f"{word}.png")
        (tmp_path / f"{word}.txt").write_text(word)
    source = source_module.read_source(tmp_path, BuildConfig.parse({"bits": 16}), work=tmp_path / "work")
    assert (source.learn_from, source.pairs.labels) == ("pairs", None)


def test_a_sync_of_images_without_any_text_finds_the_new_ones(photographs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photographs"
    shutil.copytree(photographs, folder)
    (folder / "chelsea.png").rename(tmp_path / "chelsea.png")
    library = build(folder, tmp_path / "library").library
    (tmp_path / "chelsea.png").rename(folder / "chelsea.png")
    with Library.open(library, writable=True) as opened:
        assert sync(opened) == Synced(added=1)
        assert sync(opened) == Synced()
    with Searcher.open(library) as searcher:
        (hit,) = searcher.search(searcher.text("a cat"), 1)
        assert (hit.item.picture, hit.item.text) == ("chelsea.png", None)
        (nearest, _) = searcher.search(searcher.image(folder / "chelsea.png"), 2, to="image")
        assert nearest.item.picture == "chelsea.png"


def test_captions_win_over_the_names_of_nested_folders(coco66k_root: Path, tmp_path: Path) -> None:
    texts = dict(line.split("\t")[::2] for line in (coco66k_root / "pairs.tsv").read_text().splitlines())
    folders, dogs, others = ("2019 Sicily/beach", "2019 Sicily/town", "2020 Alps", "2021 Lake/day 1", "2022"), 0, 0
    with tarfile.open(coco66k_root / "images.tar") as tar:
        for number, member in enumerate(tar):
            text = texts[str(int(Path(member.name).stem))]
            is_dog = "dog" in text.lower().split()
            dogs, others = dogs + is_dog, others + (not is_dog)
            if (dogs if is_dog else others) > (20 if is_dog else 60):
                continue
            place = tmp_path / "images" / folders[number % 5]
            tar.extractall(place, [member], filter="data")
            (place / member.name).rename(place / f"{'dog' if is_dog else 'other'} {number}.jpg")
            if number % 4:
                (place / f"{'dog' if is_dog else 'other'} {number}.txt").write_text(text)
    said: list[str] = []
    report = build(tmp_path / "images", tmp_path / "library", tell=said.append).report
    assert report["counts"]["items"] == 80
    assert any("names of folders serve as filters" in line for line in said)
    with Searcher.open(tmp_path / "library") as searcher:
        hits = searcher.search(searcher.text("a dog"), 8, to="image")
        assert [str(hit.item.picture).rpartition("/")[2][:3] for hit in hits] == ["dog"] * 8
        assert {label for hit in hits for label in hit.item.labels} <= {"beach", "town", "2020 Alps", "day 1", "2022"}
        assert all(hit.item.labels for hit in hits)
