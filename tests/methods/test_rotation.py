"""Rotation: codes of one common space without training, and the vectors of that space."""

from __future__ import annotations

import numpy as np

from rmsh.codes import Codes
from rmsh.data.pairs import Pairs
from rmsh.methods import create


def _pairs() -> Pairs:
    """Images and texts in one space with a gap between them, as those of CLIP."""
    draw = np.random.default_rng(0)
    meant = draw.standard_normal((400, 24))
    images, texts = (meant + 0.3 * draw.standard_normal(meant.shape) + gap for gap in (2, -2))
    return Pairs(ids=np.arange(400), images=images.astype(np.float32), texts=texts.astype(np.float32))


def test_a_common_space_is_used_as_it_is() -> None:
    pairs = _pairs()
    model = create("rotation", bits=24).fit(pairs).model
    assert model.has_embedding
    for modality in ("image", "text"):
        features = np.asarray(pairs.features(modality), np.float64)
        centred = features - features.mean(axis=0)
        expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        np.testing.assert_allclose(model.embed(pairs.features(modality), modality), expected, atol=1e-5)
        # 24 bits of 24 dimensions are a rotation: it keeps all angles.
        turned = model.project(pairs.features(modality), modality)
        np.testing.assert_allclose(turned @ turned.T, expected @ expected.T, atol=1e-5)


def test_the_first_bits_are_a_shorter_code() -> None:
    """Of the texts, most find their image first with 24 bits, and many with the first 12 of them."""
    pairs = _pairs()
    model = create("rotation", bits=24).fit(pairs).model
    images, texts = (model.project(pairs.features(modality), modality) for modality in ("image", "text"))
    found = []
    for bits in (12, 24):
        signs = [np.sign(values[:, :bits]) for values in (texts, images)]
        distances = (bits - signs[0] @ signs[1].T) / 2
        own = np.diag(distances)[:, None]
        found.append(float(((distances < own).sum(axis=1) < 10).mean()))
        np.testing.assert_array_equal(Codes.from_values(texts[:, :bits]).bits, bits)
    assert 0.6 < found[0] < found[1]
    assert found[1] > 0.9
