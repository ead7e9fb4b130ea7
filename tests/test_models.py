"""The model that comes with rmsh: its size, its card, and that it is whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rmsh.models
from lab.wheel_model import rounded
from rmsh.models import wheel_model
from rmsh.pipeline import DEFAULT_ENCODERS

FOLDER = Path(rmsh.models.__file__).parent / "coco"


def test_the_model_is_whole_and_of_the_default_method_and_encoders() -> None:
    model = wheel_model()  # compares the fingerprint
    assert (model.method, model.bits, model.facts["items"]) == ("nest", 256, 61_903)
    assert {modality: encoder["name"] for modality, encoder in model.encoders.items()} == DEFAULT_ENCODERS
    assert model.has_embedding


def test_the_model_is_small() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size <= 6_000_000


def test_nothing_is_lost_by_half_precision() -> None:
    model = wheel_model()
    assert rounded(model).fingerprint == model.fingerprint
    assert np.isfinite(model.project(np.ones((1, 1280), np.float32), "image")).all()


def test_the_card_names_data_licence_limits_scores_and_biases() -> None:
    card = (FOLDER / "card.md").read_text()
    for words in ("61,903", "CC BY 4.0", "cocodataset.org", "does not know", "recall@10", "4,956 queries", "## Biases"):
        assert words in card


def test_a_copy_of_the_model_keeps_the_attribution(tmp_path: Path) -> None:
    wheel_model().save(tmp_path)
    assert "CC BY 4.0" in (tmp_path / "card.md").read_text()
