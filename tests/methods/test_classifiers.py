"""Classifiers of both modalities: their loss by hand, and the square roots they export."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.hash_function import HashFunction, KernelLayer
from rmsh.methods.classifiers import Classifiers, square_rooted
from rmsh.methods.deep import DeepConfig
from rmsh.training.loop import TrainingSet


def _classifiers() -> tuple[Classifiers, TrainingSet]:
    pairs = generate_pairs(20, image_dim=5, text_dim=4)
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))
    torch.manual_seed(0)
    return Classifiers(data, DeepConfig(hidden=6)), data


def test_the_loss_is_the_cross_entropy_of_both_modalities() -> None:
    objective, data = _classifiers()
    batch = data.batch(np.arange(20))
    terms = objective(batch).terms
    for name, z in (("image", objective.image(batch.images)), ("text", objective.text(batch.texts))):
        p = torch.sigmoid(z)
        wanted = -(batch.labels * p.log() + (1 - batch.labels) * (1 - p).log()).sum() / 20
        assert float(terms[name].detach()) == pytest.approx(float(wanted.detach()), rel=1e-4)


def test_what_is_exported_squares_to_the_probabilities() -> None:
    objective, data = _classifiers()
    roots = objective.export()["image"](data.images)
    wanted = torch.sigmoid(objective.image(torch.from_numpy(data.images))).detach().numpy()
    np.testing.assert_allclose(np.square(roots), wanted, atol=1e-5)


def test_a_function_that_does_not_end_with_a_matrix_product_has_no_probabilities() -> None:
    kernel = KernelLayer(np.eye(2, dtype=np.float32), np.ones(1, dtype=np.float32))
    with pytest.raises(TypeError, match="ends with a matrix product"):
        square_rooted(HashFunction((kernel,)))
