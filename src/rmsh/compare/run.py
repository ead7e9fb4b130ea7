"""A run: the parameters of one training and its scores, and the path of its result file, which follows from them.

A run without bits is a reference line, which shows what a ranking by real numbers reaches. It learns from the same
pairs as the methods and ranks by the dot product of vectors, which take hundreds of bytes per item instead of a few. It
is a method that also has ``vectors(features, modality)``, float32 (n, d):

- ``cca-cosine``: cosine after canonical correlation, 64 dimensions;
- ``logistic`` and ``mlp``: dot product of label probabilities, one classifier per modality.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import MAX_BITS
from rmsh.core.errors import ConfigError
from rmsh.core.registry import Registry
from rmsh.core.types import Features, FloatArray, Modality
from rmsh.data.splits import PROTOCOLS
from rmsh.methods import method_class
from rmsh.methods.cca_itq import CCAITQ
from rmsh.metrics.evaluate import UNSEEN_RANKS

if TYPE_CHECKING:
    from rmsh.methods.base import Method


@dataclass(frozen=True)
class Run:
    """One training and its scores: everything that the result depends on.

    Example:
        >>> Run("coco66k", "rmsh").path
        PurePosixPath('coco66k/rmsh-64-s0.json')
        >>> Run("coco66k", "rmsh", bits=16, options={"delta": 2.0}).path
        PurePosixPath('coco66k/rmsh-16-s0-7bc53310.json')
    """

    dataset: str  # short name of the data, such as "coco66k"
    method: str  # a registered method, or a reference line
    bits: int = 64  # 0 for a reference line
    seed: int = 0
    preset: str | None = None  # a named set of the method's options
    options: Mapping[str, Any] = field(default_factory=dict)  # options of the method; they override the preset
    text: str = "minilm"  # encoder of raw texts
    train: int | None = None  # number of training pairs, None for all; see measure.split_of
    validation: bool = False  # held-out training pairs are the queries
    label_noise: float = 0.0  # share of the training pairs that get the labels of another pair
    image_noise: float = 0.0  # noise in the images of the queries, see measure.disturb_features
    text_noise: float = 0.0  # noise in the texts of the queries
    k: int = 500  # cut-off of NDCG and precision in the protocol "paper"
    protocol: str = "paper"  # "paper": the database is the training set; "unseen": none of it was trained on
    prefixes: tuple[int, ...] = ()  # lengths of prefixes of the codes that are also scored
    tag: str = field(default="", compare=False)  # name in a table; neither the result nor the path depends on it

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefixes", tuple(self.prefixes))  # a list if it was read from JSON
        if not 0 <= self.bits <= MAX_BITS:
            raise ConfigError(f"bits is {self.bits}; give 1 to {MAX_BITS}.")
        if self.train is not None and self.train < 3:
            raise ConfigError(f"train is {self.train}; give at least 3 training pairs, or leave it out for all.")
        if self.k < 1:
            raise ConfigError(f"k is {self.k}; give a cut-off of 1 or more.")
        if not 0 <= self.label_noise <= 1:
            raise ConfigError(f"label_noise is {self.label_noise}; give a share of the training pairs, 0 to 1.")
        if self.image_noise < 0 or self.text_noise < 0:
            raise ConfigError(f"image_noise is {self.image_noise} and text_noise {self.text_noise}; give 0 or more.")
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"protocol is {self.protocol!r}; give one of {', '.join(PROTOCOLS)}.")
        if not all(1 <= prefix < self.bits for prefix in self.prefixes):
            raise ConfigError(f"prefixes is {[*self.prefixes]}; give lengths from 1 to below {self.bits} bits.")

    @property
    def ranks(self) -> tuple[int, ...]:
        """The cut-offs of NDCG."""
        return (self.k,) if self.protocol == "paper" else UNSEEN_RANKS

    @property
    def path(self) -> PurePosixPath:
        """Path of the result in the folder of all results; a hash stands for parameters that are not the default."""
        usual = Run(self.dataset, self.method, self.bits, self.seed).to_json()
        changed = {name: value for name, value in self.to_json().items() if value != usual[name]}
        length = f"-{self.bits}" if self.bits else ""
        name = f"{self.method}{length}-s{self.seed}" + (f"-{_digest(changed)}" if changed else "")
        return PurePosixPath(self.dataset) / f"{name}.json"

    def to_json(self) -> dict[str, Any]:
        """All parameters as plain values, the "run" of a result file; ``Run(**values)`` is the inverse."""
        values = {name: value for name, value in vars(self).items() if name != "tag"}
        return values | {"options": dict(self.options), "prefixes": [*self.prefixes]}


def _digest(value: Any) -> str:
    return sha256(json.dumps(_plain(value), sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:8]


def _plain(value: Any) -> Any:
    """The same value however it was written: 2.0 becomes 2."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


REFERENCES = Registry(
    "reference line",
    "rmsh.references",
    {
        "cca-cosine": "rmsh.compare.run:CCACosine",
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
