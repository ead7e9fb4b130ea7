"""A learned hash function as plain arrays: a few layers in numpy, so that search does not need torch.

Most layers are a matrix product and an activation; a kernel layer compares its input with anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from scipy import sparse
from scipy.special import log_expit

from rmsh.core.errors import DataError, FormatError
from rmsh.core.types import Features, FloatArray

Activation = Literal["none", "relu", "tanh", "root-sigmoid"]

_ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0, out=x),
    "tanh": lambda x: np.tanh(x, out=x),
    # the square root of the probability with logit x
    "root-sigmoid": lambda x: np.exp(0.5 * log_expit(x)),
}
_BLOCK = 8192  # rows at a time: fast products with little memory


class Layer(NamedTuple):
    """x -> activation(x @ weight + bias)."""

    weight: FloatArray  # (inputs, outputs)
    bias: FloatArray  # (outputs,)
    activation: Activation

    @property
    def inputs(self) -> int:
        return len(self.weight)

    def __call__(self, x: Features) -> FloatArray:
        """Map x (n, inputs) to float32 (n, outputs)."""
        return _ACTIVATIONS[self.activation](np.asarray(x @ self.weight) + self.bias)


class KernelLayer(NamedTuple):
    """x -> exp(-||x - z||^2 / width) for each anchor z."""

    anchors: FloatArray  # (outputs, inputs)
    width: FloatArray  # (1,)
    activation: Literal["gaussian"] = "gaussian"

    @property
    def inputs(self) -> int:
        return int(self.anchors.shape[1])

    def __call__(self, x: Features) -> FloatArray:
        """Map x (n, inputs) to float32 (n, outputs) in (0, 1]."""
        squares = (cast("Any", x).multiply(x) if sparse.issparse(x) else np.square(x)).sum(axis=1)
        distances: FloatArray = np.asarray(x @ (-2 * self.anchors.T))
        distances += np.asarray(squares)[:, None] + np.square(self.anchors).sum(axis=1)
        # rounding can give a tiny negative number if x is an anchor
        return np.exp(-np.maximum(distances, 0, out=distances) / self.width)


class JointLayer(NamedTuple):
    """x -> the square roots of label probabilities and an embedding, each of unit length, side by side.

    Example:
        >>> layer = JointLayer(np.eye(3, dtype=np.float32), np.zeros(3, np.float32), np.array([1], np.float32))
        >>> layer(np.array([[2.0, 3.0, 4.0]], np.float32)).round(2).tolist()
        [[1.0, 0.6..., 0.8...]]
    """

    weight: FloatArray  # (inputs, classes + dimensions)
    bias: FloatArray  # (classes + dimensions,)
    classes: FloatArray  # (1,)
    activation: str = "joint"

    @property
    def inputs(self) -> int:
        return len(self.weight)

    def __call__(self, x: Features) -> FloatArray:
        """Map x (n, inputs) to float32 (n, outputs)."""
        y, split = np.asarray(x @ self.weight) + self.bias, int(self.classes[0])
        y[:, :split] = np.exp(0.5 * log_expit(y[:, :split]))
        for block in (y[:, :split], y[:, split:]):
            block /= np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-12)
        return y


class RootLayer(NamedTuple):
    """x -> sqrt(x): counts and other non-negative features, whose largest values would dominate."""

    width: FloatArray  # (1,), the number of features
    activation: str = "root"

    @property
    def inputs(self) -> int:
        return int(self.width[0])

    def __call__(self, x: Features) -> Features:
        """Map x (n, inputs), dense or sparse, to its square roots; negative values become 0."""
        return cast("Features", np.sqrt(cast("Any", x).maximum(0) if sparse.issparse(x) else np.maximum(x, 0)))


AnyLayer: TypeAlias = Layer | KernelLayer | JointLayer | RootLayer


@dataclass(frozen=True)
class HashFunction:
    """Layers from features to relaxed codes, whose signs are the code.

    Example:
        >>> one = Layer(np.array([[1.0], [-1.0]], np.float32), np.zeros(1, np.float32), "none")
        >>> HashFunction((one,))(np.array([[3.0, 1.0]], np.float32))
        array([[2.]], dtype=float32)
    """

    layers: tuple[AnyLayer, ...]

    @property
    def inputs(self) -> int:
        """The number of features."""
        return self.layers[0].inputs

    @property
    def bits(self) -> int:
        """The code length; the last layer is always a matrix product."""
        return len(cast("Layer", self.layers[-1]).bias)

    @property
    def kinds(self) -> list[str]:
        """The kinds of its layers, as in a model file."""
        return [layer.activation for layer in self.layers]

    @property
    def joint(self) -> HashFunction | None:
        """The layers up to the joint space of images and texts, or None if there is none."""
        kinds = self.kinds
        return HashFunction(self.layers[: kinds.index("joint") + 1]) if "joint" in kinds else None

    def __call__(self, features: Features) -> FloatArray:
        """Relaxed codes, float32 (n, bits), of features (n, inputs), dense or sparse."""
        if features.ndim != 2 or features.shape[1] != self.inputs:
            found = f"The features have shape {features.shape}, but this model takes (n, {self.inputs})"
            raise DataError(f"{found}; use the encoder that it was trained with.")
        codes = np.empty((features.shape[0], self.bits), dtype=np.float32)
        for start in range(0, len(codes), _BLOCK):
            x = features[start : start + _BLOCK]
            x = x if sparse.issparse(x) else np.asarray(x, dtype=np.float32)
            for layer in self.layers:
                x = layer(x)
            codes[start : start + _BLOCK] = x
        return codes

    def tensors(self, prefix: str) -> dict[str, FloatArray]:
        """The arrays by name, as in a model file."""
        return {
            f"{prefix}.{i}.{name}": np.ascontiguousarray(array)
            for i, layer in enumerate(self.layers)
            for name, array in layer._asdict().items()
            if name != "activation"
        }

    @classmethod
    def from_tensors(cls, prefix: str, tensors: Mapping[str, FloatArray], kinds: list[str]) -> HashFunction:
        """The inverse of :meth:`tensors`; FormatError if a layer is missing or its kind unknown."""
        layers: list[AnyLayer] = []
        for i, kind in enumerate(kinds):
            layer: Any = {"gaussian": KernelLayer, "joint": JointLayer, "root": RootLayer}.get(kind, Layer)
            names = [f"{prefix}.{i}.{name}" for name in layer._fields if name != "activation"]
            if kind not in (*get_args(Activation), "gaussian", "joint", "root") or not tensors.keys() >= set(names):
                known = f"{', '.join(get_args(Activation))}, gaussian, joint, root"
                found = f"The layer {prefix}.{i} ({kind}) is not in the model file, or its kind is not one of {known}"
                raise FormatError(f"{found}; the model is damaged or from a newer rmsh.")
            layers.append(layer(*(tensors[name] for name in names), kind))
        return cls(tuple(layers))
