"""Adversarial learning in one step: a discriminator and the networks it judges, each with its own loss.

The usual two steps, the discriminator's and the generator's, become two terms of one sum. No gradient of the first
reaches what is judged, and none of the second reaches the discriminator, so that one backward pass serves both.
"""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812  # its customary name
from torch import Tensor, nn
from torch.func import functional_call

__all__ = ["discriminator", "fooling_loss", "telling_loss"]


def discriminator(inputs: int, *, widths: tuple[int, ...], slope: float) -> nn.Sequential:
    """A network that tells real rows from made ones: a logit, positive for real.

    Args:
        inputs: the width of a row.
        widths: of the hidden layers.
        slope: of the leaky ReLU between the layers, for negative values; 0 is the plain one.
    """
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.LeakyReLU(slope)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 1))


def telling_loss(judge: nn.Module, real: Tensor, made: Tensor) -> Tensor:
    """What the discriminator minimises: the cross-entropy of telling real from made rows; only it learns from this."""
    says_real, says_made = judge(real.detach()), judge(made.detach())
    return F.softplus(-says_real).mean() + F.softplus(says_made).mean()


def fooling_loss(judge: nn.Module, made: Tensor) -> Tensor:
    """What the maker minimises: made rows shall pass for real (the form that does not saturate); only it learns."""
    frozen = {name: parameter.detach() for name, parameter in judge.named_parameters()}
    return F.softplus(-functional_call(judge, frozen, (made,))).mean()
