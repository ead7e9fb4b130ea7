"""Layers of a hash function: kernels and square roots of probabilities, stored and restored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import FormatError
from rmsh.hash_function import HashFunction, KernelLayer, Layer
from rmsh.model import Model, load

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(7, 3)).astype(np.float32)
KERNEL = KernelLayer(RNG.normal(size=(4, 3)).astype(np.float32), np.array([2.5], np.float32))
LAST = Layer(RNG.normal(size=(4, 5)).astype(np.float32), np.zeros(5, np.float32), "root-sigmoid")


def test_a_kernel_layer_equals_its_definition() -> None:
    differences = FEATURES[:, None].astype(np.float64) - KERNEL.anchors
    np.testing.assert_allclose(KERNEL(FEATURES), np.exp(-np.square(differences).sum(axis=2) / 2.5), rtol=1e-5)


def test_a_kernel_layer_takes_sparse_features() -> None:
    np.testing.assert_allclose(KERNEL(sparse.csr_array(FEATURES)), KERNEL(FEATURES), rtol=1e-5)


def test_an_anchor_compared_with_itself_gives_one_at_most() -> None:
    far = KernelLayer((KERNEL.anchors + 100).astype(np.float32), KERNEL.width)
    assert (far(far.anchors) <= 1).all()


def test_a_root_sigmoid_is_the_square_root_of_a_probability_without_overflow() -> None:
    layer = Layer(np.ones((1, 1), np.float32), np.zeros(1, np.float32), "root-sigmoid")
    values = layer(np.array([[0.0], [np.log(3.0)], [-1000.0], [1000.0]], np.float32))
    np.testing.assert_allclose(values.ravel(), [np.sqrt(0.5), np.sqrt(0.75), 0, 1], rtol=1e-6)
    assert values.dtype == np.float32


def test_a_model_of_kernels_and_probabilities_survives_its_folder(tmp_path: Path) -> None:
    function = HashFunction((KERNEL, LAST))
    model = Model({"image": function, "text": function}, "seph", {"bits": 5})
    model.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.functions["text"].kinds == ["gaussian", "root-sigmoid"]
    assert loaded.fingerprint == model.fingerprint
    np.testing.assert_array_equal(loaded.project(FEATURES, "image"), function(FEATURES))
    assert "- image: 3 -> 4 -> 5" in (tmp_path / "card.md").read_text()


@pytest.mark.parametrize("kind", ["gaussian", "tanh", "wavelet"])
def test_a_missing_or_unknown_layer_is_refused(kind: str) -> None:
    with pytest.raises(FormatError, match=rf"text\.0 \({kind}\).*none, relu, tanh, root-sigmoid, gaussian"):
        HashFunction.from_tensors("text", {"text.0.weights": FEATURES}, [kind])
