"""Adversarial training in one step: the losses of a discriminator and of the networks that generate its input.

The usual two steps become two terms of one sum. The discriminator's loss sends no gradient to the generator, and the
generator's loss sends none to the discriminator, so one backward pass serves both.
"""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812  # its customary name
from torch import Tensor, nn
from torch.func import functional_call


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
