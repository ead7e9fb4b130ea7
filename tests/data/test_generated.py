"""Generated pairs: repeatable, multi-label, and learnable without being easy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from rmsh.core.errors import DataError
from rmsh.data.synthetic.generated import CLASS_NAMES, generate_pairs


def test_the_same_seed_gives_the_same_pairs() -> None:
    a, b, other = generate_pairs(50), generate_pairs(50), generate_pairs(50, seed=1)
    np.testing.assert_array_equal(a.images, b.images)
    np.testing.assert_array_equal(a.texts, b.texts)
    assert (a.labels != other.labels).any()


def test_items_have_one_to_four_labels_of_unequal_frequency() -> None:
    labels = generate_pairs(2000).labels
    assert set(labels.sum(axis=1)) == {1, 2, 3, 4}
    assert labels.mean(axis=0).max() > 3 * labels.mean(axis=0).min() > 0


def test_classes_of_one_scene_occur_together_more_often_than_by_chance() -> None:
    labels = generate_pairs(2000).labels.astype(bool)
    person, dog, car = (CLASS_NAMES.index(name) for name in ("person", "dog", "car"))
    assert labels[labels[:, person], dog].mean() > 1.5 * labels[:, dog].mean()
    assert labels[labels[:, person], car].mean() < labels[:, car].mean()


def _accuracy(noise: float) -> tuple[float, float]:
    """How often the highest score of a linear model is a label of the item, by images and by texts."""
    pairs = generate_pairs(1000, noise=noise)
    first = []
    for features in (pairs.images, pairs.texts):
        scores = Ridge(10.0).fit(features[:700], pairs.labels[:700]).predict(features[700:])
        first.append(float(pairs.labels[700:][np.arange(300), scores.argmax(axis=1)].mean()))
    return first[0], first[1]


def test_learning_is_neither_trivial_nor_hopeless_and_noise_makes_it_harder() -> None:
    assert all(0.5 < part < 0.95 for part in _accuracy(1.5))
    assert min(_accuracy(0.2)) > 0.97
    assert max(_accuracy(8.0)) < 0.5


def test_class_names_are_different_words() -> None:
    assert len(set(CLASS_NAMES)) == len(CLASS_NAMES) == 24
    assert generate_pairs(5, classes=24).class_names == CLASS_NAMES


@pytest.mark.parametrize("wrong", [{"n": 0}, {"classes": 3}, {"classes": 25}, {"image_dim": 0}, {"noise": -1.0}])
def test_numbers_out_of_range_are_refused(wrong: Any) -> None:
    with pytest.raises(DataError, match="4 to 24 classes"):
        generate_pairs(**({"n": 10} | wrong))
