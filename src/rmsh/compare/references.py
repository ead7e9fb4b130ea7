"""Methods and reference lines by the name in a run.

A reference line shows what a ranking by real numbers reaches. It learns from the same pairs as the methods and ranks by
the dot product of vectors, which take hundreds of bytes per item instead of a few. It is a method that also has
``vectors(features, modality)``, float32 (n, d):

- ``cca-cosine``: cosine after canonical correlation, 64 dimensions;
- ``logistic`` and ``mlp``: dot product of label probabilities, one classifier per modality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.registry import Registry
from rmsh.methods import method_class
from rmsh.methods.cca_itq import CCAITQ

if TYPE_CHECKING:
    from rmsh.compare.run import Run
    from rmsh.core.types import Features, FloatArray, Modality
    from rmsh.methods.base import Method

REFERENCES = Registry(
    "reference line",
    "rmsh.references",
    {
        "cca-cosine": "rmsh.compare.references:CCACosine",
        "logistic": "rmsh.methods.classifier_itq:LogisticProbabilities",
        "mlp": "rmsh.methods.classifier_itq:MLPProbabilities",
    },
)


def class_of(run: Run) -> type[Method]:
    """The class of the method, or of the reference line if the run has no bits."""
    if run.bits:
        return method_class(run.method)
    reference: type[Method] = REFERENCES.load(run.method)
    return reference


def method_of(run: Run) -> Method:
    """The method or reference line of a run with its options, not fitted."""
    length = {"bits": run.bits} if run.bits else {}
    return class_of(run)(preset=run.preset, seed=run.seed, **length, **run.options)


class CCACosine(CCAITQ):
    """Canonical correlation without quantisation; ``bits`` is the number of dimensions.

    The rotation of iterative quantisation preserves angles, so this is CCA-ITQ before the signs are taken.
    """

    name = "cca-cosine"
    summary = "cosine after canonical correlation, dimensions weighted by their correlations; no codes"

    def vectors(self, features: Features, modality: Modality) -> FloatArray:
        """Projections of length 1."""
        return unit_rows(self.project(features, modality))


def unit_rows(values: FloatArray) -> FloatArray:
    """Vectors (n, d), each scaled to length 1."""
    lengths = np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    return np.asarray(values / lengths, dtype=np.float32)
