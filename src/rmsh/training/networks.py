"""Networks shared by the methods, from features to relaxed codes, and their export to plain arrays for numpy.

A hash network scales its input and maps it D -> hidden -> K. Scaling and batch normalisation are affine, so a trained
network is exported as two matrix products. Adversarial methods also have a discriminator and its two losses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from torch import Tensor, nn
from torch.func import functional_call

from rmsh.core.types import Features
from rmsh.data.pairs import moments
from rmsh.hash_function import Activation, HashFunction, Layer

Scaling = Literal["standardise", "norm"]

_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"none": lambda x: x, "relu": F.relu, "tanh": torch.tanh}

# Scaled inputs have about this Euclidean norm in any dimension, so that one learning rate fits all features.
INPUT_NORM = 10.0


class InputScaling(nn.Module):
    """x -> x * scale + offset, computed from the training features (n, d) and then fixed.

    "standardise" gives every feature mean 0 and the same deviation; "norm" multiplies all features by one number. Both
    give inputs a Euclidean norm of about ``INPUT_NORM``.
    """

    scale: Tensor
    offset: Tensor

    def __init__(self, features: Features, scaling: Scaling = "standardise") -> None:
        super().__init__()
        mean, deviation = moments(features)
        if scaling == "norm":
            norm = max(float(np.sqrt(np.square(mean).sum() + np.square(deviation).sum())), 1e-12)
            shift, scale = np.zeros_like(mean), np.full_like(mean, INPUT_NORM / norm)
        else:
            # A constant feature is switched off instead of being divided by zero.
            varies = deviation > 1e-6 * max(float(deviation.max()), 1e-12)
            each = INPUT_NORM / np.sqrt(max(int(varies.sum()), 1))
            shift, scale = mean, np.where(varies, each / np.where(varies, deviation, 1.0), 0.0)
        self.register_buffer("scale", torch.from_numpy(scale.astype(np.float32)))
        self.register_buffer("offset", torch.from_numpy((-shift * scale).astype(np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcmul(self.offset, x, self.scale)


def dropout_mask(like: Tensor, rate: float) -> Tensor:
    """Zero with probability ``rate`` (to the nearest 1/256), else the factor that preserves the mean.

    One random word serves eight values: one random number per value would cost as much as the matrix products.
    """
    dropped = round(rate * 256)
    words = torch.empty(-(-like.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    numbers = words.view(torch.uint8)[: like.numel()].view(like.shape).to(like.dtype)
    # A byte below ``dropped`` becomes 0, any other 1; arithmetic is twice as fast as a comparison here.
    return numbers.sub_(dropped - 1).clamp_(0, 1).mul_(256 / (256 - dropped))


class HashNetwork(nn.Module):
    """D -> hidden -> K: the hash function of one modality.

    ``batch_norm`` before the last activation, ``output``, prevents constant bits; ``dropout`` is in the hidden layer.
    """

    steepness: Tensor

    def __init__(
        self,
        scaling: InputScaling,
        bits: int,
        *,
        hidden: int,
        activation: Activation = "relu",
        output: Activation = "tanh",
        batch_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.scaling = scaling
        self.hidden = _linear(scaling.scale.numel(), hidden)
        self.output = _linear(hidden, bits)
        self.norm = nn.BatchNorm1d(bits) if batch_norm else None
        self.activations: tuple[Activation, Activation] = (activation, output)
        self.dropout = dropout
        self.register_buffer("steepness", torch.ones(()))  # factor of the input of the last activation

    def forward(self, x: Tensor) -> Tensor:
        return self.code(self.represent(self.scaling(x)))

    def represent(self, scaled: Tensor) -> Tensor:
        """The hidden layer, (n, hidden), of scaled features."""
        h = _ACTIVATIONS[self.activations[0]](self.hidden(scaled))
        return h * dropout_mask(h, self.dropout) if self.dropout and self.training else h

    def code(self, representation: Tensor) -> Tensor:
        """The relaxed code, (n, K), of the hidden layer's output."""
        z = self.output(representation)
        return _ACTIVATIONS[self.activations[1]](self.steepness * (z if self.norm is None else self.norm(z)))

    @torch.no_grad()
    def export(self, *, output: Activation | None = None) -> HashFunction:
        """The trained network as two layers of plain arrays, optionally with another activation of the last layer."""
        weight, scaling = self.hidden.weight, self.scaling
        gain, shift = torch.ones_like(self.output.bias), self.output.bias.detach()
        if self.norm is not None and self.norm.running_mean is not None and self.norm.running_var is not None:
            gain = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
            shift = self.norm.bias + gain * (self.output.bias - self.norm.running_mean)
        first = _layer(weight * scaling.scale, self.hidden.bias + weight @ scaling.offset, self.activations[0])
        gain, shift = self.steepness * gain[:, None], self.steepness * shift
        return HashFunction((first, _layer(gain * self.output.weight, shift, output or self.activations[1])))


class LabelNetwork(nn.Module):
    """Labels (n, C) -> hidden -> representation -> K, with ReLU between: codes of label sets.

    ``widths`` are those of the hidden layer and of the representation.
    """

    def __init__(self, classes: int, bits: int, *, widths: tuple[int, int], output: Activation) -> None:
        super().__init__()
        hidden, width = widths
        self.first, self.second, self.output = _linear(classes, hidden), _linear(hidden, width), _linear(width, bits)
        self.activation: Activation = output

    def forward(self, labels: Tensor) -> Tensor:
        return self.code(self.represent(labels))

    def represent(self, labels: Tensor) -> Tensor:
        """The representation, (n, width)."""
        return F.relu(self.second(F.relu(self.first(labels))))

    def code(self, representation: Tensor) -> Tensor:
        """The relaxed code, (n, K), of a representation."""
        return _ACTIVATIONS[self.activation](self.output(representation))

    @torch.no_grad()
    def export(self) -> HashFunction:
        """The trained network as three layers of plain arrays."""
        first, second = (_layer(linear.weight, linear.bias, "relu") for linear in (self.first, self.second))
        return HashFunction((first, second, _layer(self.output.weight, self.output.bias, self.activation)))


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _layer(weight: Tensor, bias: Tensor, activation: Activation) -> Layer:
    return Layer(np.ascontiguousarray(weight.numpy().T), bias.numpy().copy(), activation)


def discriminator(inputs: int, *, widths: tuple[int, ...], slope: float) -> nn.Sequential:
    """A network with hidden layers of these widths and leaky ReLU; its logit is positive for real rows."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.LeakyReLU(slope)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 1))


def discriminator_loss(network: nn.Module, real: Tensor, generated: Tensor) -> Tensor:
    """Cross-entropy of classifying rows as real or generated; only the discriminator receives a gradient."""
    real_logits, generated_logits = network(real.detach()), network(generated.detach())
    return F.softplus(-real_logits).mean() + F.softplus(generated_logits).mean()


def generator_loss(network: nn.Module, generated: Tensor) -> Tensor:
    """Non-saturating loss of generated rows that the discriminator rejects; only the generator receives a gradient."""
    frozen = {name: parameter.detach() for name, parameter in network.named_parameters()}
    return F.softplus(-functional_call(network, frozen, (generated,))).mean()
