"""Networks: scaling, dropout, and that what is exported to numpy is what was trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from rmsh.data.pairs import moments
from rmsh.training.networks import INPUT_NORM, HashNetwork, InputScaling, LabelNetwork, dropout_mask


def _features(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, 3.0, (200, 7)).astype(np.float32)


def test_standardised_features_have_mean_zero_and_a_norm_of_about_ten() -> None:
    scaled = InputScaling(_features())(torch.from_numpy(_features())).numpy()
    assert np.abs(scaled.mean(axis=0)).max() < 1e-4
    assert np.sqrt(np.square(scaled).sum(axis=1).mean()) == pytest.approx(INPUT_NORM, rel=1e-3)


def test_scaling_by_the_norm_multiplies_all_features_by_one_number() -> None:
    scaling = InputScaling(_features(), "norm")
    scaled = scaling(torch.from_numpy(_features())).numpy()
    assert np.ptp(scaled / _features()) < 1e-5
    assert np.sqrt(np.square(scaled).sum(axis=1).mean()) == pytest.approx(INPUT_NORM, rel=1e-3)


def test_a_constant_feature_is_switched_off() -> None:
    features = _features()
    features[:, 3] = 42.0
    scaled = InputScaling(features)(torch.full((1, 7), 1e6))
    assert torch.isfinite(scaled).all()
    assert scaled[0, 3] == 0


def test_sparse_and_dense_features_have_the_same_moments() -> None:
    dense = (_features() * (_features(1) > 6)).astype(np.float32)
    for ours, theirs in zip(moments(sparse.csr_array(dense)), moments(dense), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_exported_function_equals_the_network(activation: str, batch_norm: bool) -> None:
    torch.manual_seed(0)
    network = HashNetwork(
        InputScaling(_features()),
        5,
        hidden=11,
        activation=activation,
        batch_norm=batch_norm,
        dropout=0.5,
    )
    for _ in range(3):  # moves the running statistics
        network(torch.from_numpy(_features(2)) * 2)
    network.eval()
    expected = network(torch.from_numpy(_features(3))).detach().numpy()
    np.testing.assert_allclose(network.export()(_features(3)), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(network.export()(sparse.csr_array(_features(3))), expected, rtol=1e-4, atol=1e-5)


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    mask = dropout_mask(torch.empty(999, 33), 0.3)
    assert (mask == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert mask.mean().item() == pytest.approx(1.0, abs=0.01)


def test_an_exported_network_of_labels_equals_the_network() -> None:
    torch.manual_seed(0)
    network, labels = LabelNetwork(4, 3, widths=(6, 5), output="tanh"), np.eye(4, dtype=np.uint8)
    expected = network(torch.from_numpy(labels).float()).detach().numpy()
    np.testing.assert_allclose(network.export()(labels), expected, rtol=1e-5, atol=1e-6)


def test_a_network_may_end_without_an_activation() -> None:
    network = HashNetwork(InputScaling(_features()), 5, hidden=11, activation="relu", output="none")
    expected = network(torch.from_numpy(_features()) * 50).detach().numpy()
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(network.export()(_features() * 50), expected, rtol=1e-4, atol=1e-4)
