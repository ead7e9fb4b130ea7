"""A learned hash function as plain arrays: a few matrix products in numpy, so that searching never needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from scipy import sparse

from rmsh.errors import DataError, FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmsh.types import Features, FloatArray

__all__ = ["Activation", "HashFunction", "Layer"]

Activation = Literal["none", "relu", "tanh"]

_ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0, out=x),
    "tanh": lambda x: np.tanh(x, out=x),
}

# Rows that pass the layers at once: large enough for fast products, small enough to need little memory.
_BLOCK = 8192


class Layer(NamedTuple):
    """x -> activation(x @ weight + bias)."""

    weight: FloatArray  # (inputs, outputs)
    bias: FloatArray  # (outputs,)
    activation: Activation


@dataclass(frozen=True)
class HashFunction:
    """Layers from features to relaxed codes; the signs of the result are the code.

    Example:
        >>> one = Layer(np.array([[1.0], [-1.0]], np.float32), np.zeros(1, np.float32), "none")
        >>> HashFunction((one,))(np.array([[3.0, 1.0]], np.float32))
        array([[2.]], dtype=float32)
    """

    layers: tuple[Layer, ...]

    @property
    def inputs(self) -> int:
        """How many features it takes."""
        return len(self.layers[0].weight)

    @property
    def bits(self) -> int:
        """How many values it gives."""
        return len(self.layers[-1].bias)

    def __call__(self, features: Features) -> FloatArray:
        """Relaxed codes, float32 (n, bits), of features (n, inputs), dense or sparse."""
        if features.ndim != 2 or features.shape[1] != self.inputs:
            raise DataError(
                f"Features of shape {features.shape} were given, this model takes (n, {self.inputs}); use the encoder "
                "it was trained with."
            )
        blocks = [self._block(features[start : start + _BLOCK]) for start in range(0, features.shape[0], _BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.bits), dtype=np.float32)

    def _block(self, features: Features) -> FloatArray:
        x = features if sparse.issparse(features) else np.asarray(features, dtype=np.float32)
        for layer in self.layers:
            x = _ACTIVATIONS[layer.activation](np.asarray(x @ layer.weight) + layer.bias)
        return x

    def tensors(self, prefix: str) -> dict[str, FloatArray]:
        """The arrays by name, as a model file stores them."""
        named: dict[str, FloatArray] = {}
        for i, layer in enumerate(self.layers):
            named[f"{prefix}.{i}.weight"] = np.ascontiguousarray(layer.weight)
            named[f"{prefix}.{i}.bias"] = layer.bias
        return named

    @classmethod
    def from_tensors(cls, prefix: str, tensors: Mapping[str, FloatArray], activations: list[str]) -> HashFunction:
        """Undo :meth:`tensors`.

        Raises:
            FormatError: a layer is missing or its activation is unknown.
        """
        layers: list[Layer] = []
        for i, activation in enumerate(activations):
            name = f"{prefix}.{i}"
            if f"{name}.weight" not in tensors or f"{name}.bias" not in tensors or activation not in _ACTIVATIONS:
                raise FormatError(
                    f"The layer {name} ({activation}) is not in the model file, or its activation is none of "
                    f"{', '.join(get_args(Activation))}; the model is damaged or of a newer rmsh."
                )
            layers.append(Layer(tensors[f"{name}.weight"], tensors[f"{name}.bias"], activation))  # type: ignore[arg-type]
        return cls(tuple(layers))
