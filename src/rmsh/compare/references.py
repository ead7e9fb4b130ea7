"""Reference lines: what rankings by real numbers reach, beside which a table of codes is read.

They learn from the same pairs as the methods and rank by the dot product of vectors, hundreds of bytes an item in the
place of a few:

- ``cca-cosine``: the cosine after canonical correlation, in 64 dimensions;
- ``logistic`` and ``mlp``: the dot product of the label probabilities of one classifier a modality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from rmsh.core.registry import Registry
from rmsh.methods.cca_itq import CCAITQ

if TYPE_CHECKING:
    from rmsh.core.types import Features, FloatArray, Modality

REFERENCES = Registry(
    "reference line",
    "rmsh.references",
    {
        "cca-cosine": "rmsh.compare.references:CCACosine",
        "logistic": "rmsh.methods.classifiers:LogisticProbabilities",
        "mlp": "rmsh.methods.classifiers:MLPProbabilities",
    },
)


class Reference(Protocol):
    """What a reference line has beyond the contract of a method."""

    def vectors(self, features: Features, modality: Modality) -> FloatArray:
        """float32 (n, d): items are ranked by the dot product with the query's."""


class CCACosine(CCAITQ):
    """Canonical correlation without quantisation; ``bits`` is the number of dimensions.

    The rotation of iterative quantisation changes no angle, so that this is CCA-ITQ before its signs are taken.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> pairs = generate_pairs(60)
        >>> vectors = CCACosine(bits=8).fit(pairs).vectors(pairs.images, "image")
        >>> bool(np.allclose((vectors**2).sum(axis=1), 1))
        True
    """

    name = "cca-cosine"
    summary = "cosine after canonical correlation, dimensions weighted by their correlations; no codes"

    def vectors(self, features: Features, modality: Modality) -> FloatArray:
        """Projections of length 1."""
        values = self.project(features, modality)
        lengths = np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
        return np.asarray(values / lengths, dtype=np.float32)
