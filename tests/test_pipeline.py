"""From data to codes: raw texts, resumed training, errors, and the codes of a library's items for recoding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh import pipeline
from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.data.open import Opened, open_pairs
from rmsh.data.pairs import Pairs
from rmsh.data.records import Skipped
from rmsh.data.splits import random_split, unseen_split
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.library import Item, Library
from rmsh.methods import create
from rmsh.model import Model, load
from rmsh.pipeline import item_coder

ITEMS = [Item("a", text="red"), Item("b", text="green and blue"), Item("c")]
WORDS = np.array(["dog", "cat", "bus", "boat", "ball", "bird"])


def _raw(n: int = 60) -> Opened:
    """Pairs whose texts are words of their labels."""
    pairs = generate_pairs(n, classes=6, image_dim=8)
    texts = np.array([" ".join(WORDS[np.flatnonzero(row)]) for row in np.asarray(pairs.labels)])
    return Opened(replace(pairs, texts=texts), random_split(n, 10), (), "words")


def _method(**options: object) -> Any:
    return create("rmsh", **{"bits": 16, "epochs": 2, "hidden": 8, "batch": 16, **options})


def test_raw_texts_are_encoded_the_same_way_when_learning_and_when_coding(tmp_path: Path) -> None:
    opened = _raw()
    model = pipeline.learn(_method(), opened, out=tmp_path / "model", encoders={"text": "bag-of-words"})
    assert set(model.encoders["text"]["vocabulary"]) == set(WORDS)
    codes = pipeline.code(load(tmp_path / "model"), opened)
    assert codes.bits == 16
    assert codes.model == model.fingerprint
    assert np.asarray(codes.split).tolist().count("query") == 10
    assert not (tmp_path / "model" / "checkpoint.safetensors").exists()


def test_an_encoder_is_prepared_on_training_rows_only() -> None:
    opened = _raw()
    texts = np.asarray(opened.pairs.texts).copy().astype("<U40")
    assert opened.split is not None
    texts[opened.split.query] = "zebra"
    opened = replace(opened, pairs=opened.pairs.with_column("text", texts))
    rows = pipeline.training_rows(opened)
    encoder = pipeline.prepare_encoders(opened.pairs, {"text": "bag-of-words"}, rows=rows)["text"]
    assert "zebra" not in encoder.describe()["vocabulary"]


def test_an_interrupted_run_is_resumed_to_the_same_model(tmp_path: Path) -> None:
    opened = open_pairs("generated:60")

    def stop(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pipeline.learn(_method(), opened, out=tmp_path / "stopped", on_progress=stop)
    assert (tmp_path / "stopped" / "checkpoint.safetensors").exists()
    resumed = pipeline.learn(_method(), opened, out=tmp_path / "stopped")
    whole = pipeline.learn(_method(), opened, out=tmp_path / "whole")
    assert resumed.fingerprint == whole.fingerprint


def test_a_finished_model_is_not_overwritten(tmp_path: Path) -> None:
    pipeline.learn(_method(), open_pairs("generated:60"), out=tmp_path)
    with pytest.raises(InputError, match="finished model"):
        pipeline.learn(_method(), open_pairs("generated:60"), out=tmp_path)


def test_raw_texts_need_a_model_trained_on_raw_texts(tmp_path: Path) -> None:
    model = pipeline.learn(_method(), open_pairs("generated:60"), out=tmp_path)
    with pytest.raises(InputError, match="texts are raw"):
        pipeline.code(model, _raw())


def test_raw_images_need_an_encoder() -> None:
    opened = _raw()
    paths = np.array([f"{i}.jpg" for i in range(60)])
    with pytest.raises(DataError, match="images are raw"):
        pipeline.prepare_encoders(opened.pairs.with_column("image", paths), {"text": "minilm"}, rows=np.arange(60))


def test_validation_queries_come_from_the_training_rows_and_leave_the_queries_alone() -> None:
    opened = open_pairs("generated:4000")
    held = pipeline.for_protocol(opened, "paper", validation=True)
    assert opened.split is not None
    assert held.split is not None
    assert len(held.split.query) == len(opened.split.train) // 10
    assert set(held.split.query) <= set(opened.split.database)
    with pytest.raises(DataError, match="has no split"):
        pipeline.for_protocol(replace(opened, split=None), "paper", validation=True)


def test_data_without_images_and_texts_cannot_be_coded(new_colours: Path) -> None:
    labels_alone = Opened(Pairs(ids=["a"], labels=[[1]]), None, (), "labels")
    with pytest.raises(DataError, match="labels"):
        pipeline.code(load(new_colours), labels_alone)


def test_a_protocol_selects_the_split() -> None:
    opened = open_pairs("generated:400")
    assert opened.split is not None
    assert pipeline.for_protocol(opened, "paper") is opened
    unseen = pipeline.for_protocol(opened, "unseen").split
    assert unseen is not None
    assert unseen.sha256 == unseen_split(opened.split).sha256
    with pytest.raises(DataError, match="has no split"):
        pipeline.for_protocol(replace(opened, split=None), "unseen")
    with pytest.raises(ConfigError, match=r"'seen'.*paper, unseen"):
        pipeline.for_protocol(opened, "seen")


def _nowhere(item: Item) -> Path | None:
    return None


def test_items_are_encoded_as_the_model_was_trained(colours: Path, new_colours: Path) -> None:
    model = load(new_colours)
    with Library.open(colours) as library:
        item = library.get("cyan")
        assert item is not None
        coded = item_coder(model, image_path=library.picture_path)([item])
    assert coded["image"].ids.tolist() == ["cyan"]
    assert coded["image"].packed.tolist() == coded["text"].packed.tolist()


def test_an_item_without_text_gets_no_text_code(new_colours: Path) -> None:
    coded = item_coder(load(new_colours), image_path=_nowhere)(ITEMS)
    assert {modality: codes.ids.tolist() for modality, codes in coded.items()} == {"text": ["a", "b"]}


def test_an_image_that_is_missing_is_an_error_by_default(colours: Path, new_colours: Path) -> None:
    (colours / "red.png").unlink()
    with Library.open(colours) as library:
        item = library.get("red")
        assert item is not None
        with pytest.raises(DataError, match=r"'red'.*red\.png"):
            item_coder(load(new_colours), image_path=library.picture_path)([item])


def _lose(colours: Path, name: str, how: str) -> None:
    (colours / f"{name}.png").unlink()
    if how == "damaged":
        (colours / f"{name}.png").write_bytes(b"damaged")
    if how == "elsewhere":
        (colours / f"{name}.png").symlink_to(Path(__file__))


@pytest.mark.parametrize(
    ("how", "reason"), [("gone", "no such file"), ("damaged", "cannot be read"), ("elsewhere", "leads out of")]
)
def test_an_item_without_a_readable_image_is_encoded_from_its_text_and_reported(
    how: str, reason: str, *, colours: Path, new_colours: Path
) -> None:
    _lose(colours, "red", how)
    skipped: list[Skipped] = []
    with Library.open(colours) as library:
        items = [item for name in ("red", "blue") if (item := library.get(name)) is not None]
        coded = item_coder(load(new_colours), image_path=library.picture_path, on_skipped=skipped.extend)(items)
    assert {modality: codes.ids.tolist() for modality, codes in coded.items()} == {
        "image": ["blue"],
        "text": ["red", "blue"],
    }
    assert [(one.id, one.file, one.left_out) for one in skipped] == [("red", "red.png", "picture")]
    assert reason in skipped[0].reason


def test_an_item_with_an_unreadable_image_only_is_reported_as_skipped(new_colours: Path) -> None:
    skipped: list[Skipped] = []
    only = Item("x", picture="x.png")
    coded = item_coder(load(new_colours), image_path=lambda _: Path("x.png"), on_skipped=skipped.extend)([only])
    assert coded == {}
    assert [(one.id, one.left_out) for one in skipped] == [("x", "item")]


def test_a_model_trained_on_features_cannot_encode_items(new_colours: Path) -> None:
    functions = load(new_colours).functions
    with pytest.raises(InputError, match="trained on features"):
        item_coder(Model(functions, "test", {}), image_path=_nowhere)
