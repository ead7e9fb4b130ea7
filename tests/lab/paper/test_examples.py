"""Retrieval examples and the t-SNE plane, from methods that train in a moment, on images of one colour."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab.paper import examples
from lab.paper.examples import (
    SHOWN,
    Gallery,
    captions_of,
    choose_classes,
    choose_queries,
    embed,
    find_examples,
    open_gallery,
)
from lab.paper.results import Experiment, RunResult
from rmsh.codes import hamming
from rmsh.compare.measure import Parts, parts_of
from rmsh.compare.run import Run
from rmsh.core.errors import DataError
from rmsh.core.types import MODALITIES
from rmsh.data.open import Opened
from rmsh.data.splits import random_split
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import create


def _jpeg(colour: tuple[int, int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """Generated features, with an archive of images of every other item beside them, as coco66k has it."""
    folder = tmp_path_factory.mktemp("data")
    pairs = generate_pairs(300, classes=8)
    pairs = replace(pairs, ids=np.arange(300).astype(np.str_), source=str(folder))
    with tarfile.open(folder / "images.tar", "w") as archive:
        for number in range(0, 300, 2):
            content = _jpeg((number % 256, 0, 0))
            member = tarfile.TarInfo(f"{number:012}.jpg")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return Opened(pairs, random_split(300, 60, name="made"), (), "made")


@pytest.fixture(scope="module")
def parts(opened: Opened) -> Parts:
    return parts_of(Run("made", "scm", bits=16), opened)


def test_an_archive_beside_the_data_has_its_images_by_id(opened: Opened) -> None:
    gallery = open_gallery(opened)
    assert "0" in gallery.files
    assert "298" in gallery.files
    assert "1" not in gallery.files
    assert gallery.thumbnail("42") != gallery.thumbnail("0")


def test_raw_images_are_their_own_gallery(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "a.jpg").write_bytes(_jpeg((9, 9, 9)))
    raw = replace(opened.pairs.take(np.arange(1)), images=np.array([str(tmp_path / "a.jpg")]))
    gallery = open_gallery(Opened(raw, None, (), "raw"))
    assert list(gallery.files) == ["0"]
    assert len(gallery.thumbnail("0")) > 100


def test_features_without_images_have_an_empty_gallery(opened: Opened, tmp_path: Path) -> None:
    assert not open_gallery(replace(opened, pairs=replace(opened.pairs, source=str(tmp_path)))).files


def test_queries_have_images_and_enough_labels_and_follow_from_the_seed(parts: Parts, opened: Opened) -> None:
    gallery = open_gallery(opened)
    queries = choose_queries(parts, gallery)
    assert queries == choose_queries(parts, gallery)
    assert len(set(queries.values())) == 2
    for row in queries.values():
        assert str(parts.query.ids[row]) in gallery.files
        assert 3 <= parts.query.labels[row].sum() <= 4


def test_too_few_images_are_refused(parts: Parts, opened: Opened) -> None:
    few = Gallery(dict(list(open_gallery(opened).files.items())[:4]), open_gallery(opened).archive)
    with pytest.raises(DataError, match="0 queries"):
        choose_queries(parts, few)


def test_hits_are_the_nearest_items_with_an_image_with_the_labels_they_share(parts: Parts, opened: Opened) -> None:
    gallery, method = open_gallery(opened), create("scm", bits=16).fit(parts.train)
    queries = choose_queries(parts, gallery)
    (example,) = find_examples(method, parts, queries={"t2i": queries["t2i"]}, gallery=gallery, captions={})
    row = queries["t2i"]
    code = method.encode(parts.query.take(np.array([row])).features("text"), "text")
    distances = hamming(code.packed, method.encode_database(parts.database, "image").packed).ravel()
    at_hand = np.array([name in gallery.files for name in parts.database.ids.tolist()])
    assert [hit["distance"] for hit in example["hits"]] == sorted(distances[at_hand].tolist())[:SHOWN]
    by_id = {name: number for number, name in enumerate(parts.database.ids.tolist())}
    for hit in example["hits"]:
        shared = parts.query.labels[row] @ parts.database.labels[by_id[hit["id"]]]
        assert hit["shared"] == shared


def test_captions_are_the_raw_texts(opened: Opened) -> None:
    assert captions_of(opened) == {}
    raw = replace(opened.pairs.take(np.arange(2)), texts=np.array(["one", "two"]))
    assert captions_of(Opened(raw, None, (), "raw")) == {"0": "one", "1": "two"}


def test_classes_that_go_together_are_not_both_chosen() -> None:
    labels = np.zeros((40, 3), dtype=np.uint8)
    labels[:20, :2] = 1  # the second class is always with the first
    labels[20:30, 0] = 1
    labels[30:, 2] = 1
    assert choose_classes(labels, 2) == [0, 2]


def test_the_plane_has_the_same_items_in_both_modalities(parts: Parts) -> None:
    method = create("scm", bits=16).fit(parts.train)
    value = embed(method, parts.query)
    assert len(value["classes"]) == 6
    kinds = [[kind for *_, kind in value["points"][modality]] for modality in MODALITIES]
    assert kinds[0] == kinds[1]
    assert set(kinds[0]) <= set(range(6))
    assert value == embed(method, parts.query)


def test_files_are_made_once_and_read_back(
    opened: Opened, make_result: Callable[..., RunResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_result("made", "cmfh", bits=16), make_result("made", bits=16, options={"epochs": 1, "hidden": 8})]
    experiment = Experiment("made", {"table 1": runs})
    monkeypatch.setattr(examples, "open_pairs", lambda _: opened)
    notes: list[str] = []
    for _ in range(2):
        examples.make_tsne(experiment, tmp_path, data="", on_note=notes.append)
    assert len(notes) == 1
    assert examples.read_tsne(tmp_path, experiment)["run"]["bits"] == 16
    assert examples.read_examples(tmp_path, experiment) == {}
    for _ in range(2):
        examples.make_examples(experiment, tmp_path, data="", on_note=notes.append)
    assert len(notes) == 3  # one for each of the two methods
    found = examples.read_examples(tmp_path, experiment)
    assert {direction: list(methods) for direction, methods in found.items()} == {
        "t2i": ["cmfh", "rmsh"],
        "i2t": ["cmfh", "rmsh"],
    }
    assert found["t2i"]["cmfh"]["query"]["id"] == found["t2i"]["rmsh"]["query"]["id"]
    others = Experiment("made", {"table 1": [make_result("made", bits=16, options={"epochs": 2, "hidden": 8})]})
    assert examples.read_tsne(tmp_path, others) is None  # of a run with other options
    assert examples.read_examples(tmp_path, others) == {}


def test_data_without_images_has_no_examples_and_a_note_says_so(
    opened: Opened, make_result: Callable[..., RunResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = replace(opened, pairs=replace(opened.pairs, source="nowhere"))
    monkeypatch.setattr(examples, "open_pairs", lambda _: bare)
    notes: list[str] = []
    experiment = Experiment("made", {"table 1": [make_result("made", "cmfh", bits=8)]})
    examples.make_examples(experiment, tmp_path, data="", on_note=notes.append)
    assert [note.split()[0] for note in notes] == ["made"]
    assert examples.read_examples(tmp_path, experiment) == {}
