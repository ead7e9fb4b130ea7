"""A model folder: saved, loaded, refused when damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import DataError, FormatError, InputError
from rmsh.hash_function import HashFunction, Layer
from rmsh.model import Model, load


def _model(bits: int = 5) -> Model:
    rng = np.random.default_rng(0)

    def function(inputs: int) -> HashFunction:
        first = Layer(rng.normal(size=(inputs, 4)).astype(np.float32), rng.normal(size=4).astype(np.float32), "relu")
        second = Layer(rng.normal(size=(4, bits)).astype(np.float32), np.zeros(bits, np.float32), "tanh")
        return HashFunction((first, second))

    return Model({"image": function(6), "text": function(3)}, "rmsh", {"bits": bits}, {"delta": {"delta": 2}})


def test_a_loaded_model_gives_the_same_codes(tmp_path: Path) -> None:
    model, features = _model(), np.random.default_rng(1).normal(size=(9, 6)).astype(np.float32)
    model.save(tmp_path)
    loaded = load(tmp_path)
    np.testing.assert_array_equal(loaded.project(features, "image"), model.project(features, "image"))
    np.testing.assert_array_equal(loaded.encode(features, "image").packed, model.encode(features, "image").packed)
    assert (loaded.fingerprint, loaded.bits, loaded.method) == (model.fingerprint, 5, "rmsh")


def test_a_hash_function_of_hand_worked_layers() -> None:
    one = Layer(np.array([[1.0, -1.0]], np.float32), np.array([0.0, 1.0], np.float32), "relu")
    two = Layer(np.array([[2.0], [3.0]], np.float32), np.array([-1.0], np.float32), "none")
    # x = 0.5: relu(0.5, 0.5) -> 2 * 0.5 + 3 * 0.5 - 1; x = -1: relu(-1, 2) -> 3 * 2 - 1
    values = HashFunction((one, two))(np.array([[0.5], [-1.0]], np.float32))
    assert values.ravel().tolist() == [1.5, 5.0]


def test_sparse_features_give_the_same_values_as_dense_ones() -> None:
    features = np.eye(6, dtype=np.float32)
    np.testing.assert_allclose(
        _model().project(sparse.csr_array(features), "image"), _model().project(features, "image"), rtol=1e-6
    )


def test_many_rows_pass_in_blocks_and_no_rows_give_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.random.default_rng(2).normal(size=(10, 6)).astype(np.float32)
    whole = _model().project(features, "image")
    monkeypatch.setattr("rmsh.hash_function._BLOCK", 3)
    np.testing.assert_allclose(_model().project(features, "image"), whole, rtol=1e-6)
    assert _model().project(features[:0], "image").shape == (0, 5)


def test_features_of_another_width_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(2, 7\).*\(n, 6\)"):
        _model().project(np.zeros((2, 7), np.float32), "image")


def test_a_modality_without_a_function_is_refused() -> None:
    model = Model({"image": _model().functions["image"]}, "rmsh", {})
    with pytest.raises(InputError, match=r"'text'.*image only"):
        model.project(np.zeros((1, 3), np.float32), "text")


def test_a_folder_without_a_config_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["[1]", '{"hidden_size": 3}', '{"format": "other"}'])
def test_a_configuration_of_another_program_is_refused(content: str, tmp_path: Path) -> None:
    _model().save(tmp_path)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(FormatError, match=r"config\.json"):
        load(tmp_path)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    _model().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(FormatError, match=r"format 99.* 2;"):
        load(tmp_path)


def test_a_flipped_bit_in_the_weights_is_noticed(tmp_path: Path) -> None:
    _model().save(tmp_path)
    data = bytearray((tmp_path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(FormatError, match="fingerprint"):
        load(tmp_path)


def test_truncated_weights_are_noticed(tmp_path: Path) -> None:
    _model().save(tmp_path)
    data = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match=r"model\.safetensors"):
        load(tmp_path)


def test_a_missing_layer_is_noticed() -> None:
    with pytest.raises(FormatError, match=r"image\.0 \(tanh\)"):
        HashFunction.from_tensors("image", {}, ["tanh"])


def test_the_card_shows_layers_facts_and_options(tmp_path: Path) -> None:
    _model().save(tmp_path)
    card = (tmp_path / "card.md").read_text()
    assert "- image: 6 -> 4 -> 5" in card
    assert '- delta: {"delta": 2}' in card
