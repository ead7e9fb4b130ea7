"""From data to codes through the functions the commands call: raw texts, resume, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rmsh import pipeline
from rmsh.core.errors import DataError, InputError
from rmsh.data.open import Opened, open_pairs
from rmsh.data.splits import random_split
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import create
from rmsh.model import load

WORDS = np.array(["dog", "cat", "bus", "boat", "ball", "bird"])


def _raw(n: int = 60) -> Opened:
    """Pairs whose texts are words of their labels."""
    pairs = generate_pairs(n, classes=6, image_dim=8)
    texts = np.array([" ".join(WORDS[np.flatnonzero(row)]) for row in np.asarray(pairs.labels)])
    return Opened(replace(pairs, texts=texts), random_split(n, 10), (), "words")


def _method(**options: object):  # type: ignore[no-untyped-def]
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
    encoder = pipeline.prepare_encoders(opened, {"text": "bag-of-words"})["text"]
    assert "zebra" not in encoder.describe()["vocabulary"]


def test_a_stopped_run_goes_on_to_the_same_model(tmp_path: Path) -> None:
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
    with pytest.raises(InputError, match="holds a finished model"):
        pipeline.learn(_method(), open_pairs("generated:60"), out=tmp_path)


def test_raw_texts_need_a_model_trained_on_raw_texts(tmp_path: Path) -> None:
    model = pipeline.learn(_method(), open_pairs("generated:60"), out=tmp_path)
    with pytest.raises(InputError, match="this model was trained on given features"):
        pipeline.code(model, _raw())


def test_raw_images_need_an_encoder() -> None:
    opened = _raw()
    paths = np.array([f"{i}.jpg" for i in range(60)])
    with pytest.raises(DataError, match="the images are raw and there is no encoder for them"):
        pipeline.prepare_encoders(replace(opened, pairs=opened.pairs.with_column("image", paths)), {"text": "minilm"})


def test_validation_queries_come_from_the_training_rows_and_leave_the_queries_alone() -> None:
    opened = open_pairs("generated:4000")
    held = pipeline.for_validation(opened)
    assert opened.split is not None
    assert held.split is not None
    assert len(held.split.query) == len(opened.split.train) // 10
    assert set(held.split.query) <= set(opened.split.database)
    with pytest.raises(DataError, match="has no split"):
        pipeline.for_validation(replace(opened, split=None))
