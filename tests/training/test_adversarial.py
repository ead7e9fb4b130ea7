"""Adversarial losses: their values, and who learns from which."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from rmsh.training.networks import discriminator, discriminator_loss, generator_loss


def _judge() -> nn.Linear:
    judge = nn.Linear(1, 1)
    nn.init.constant_(judge.weight, 1.0)
    nn.init.zeros_(judge.bias)
    return judge


def test_losses_of_a_hand_worked_case() -> None:
    real, made = torch.tensor([[math.log(3.0)]]), torch.tensor([[math.log(3.0)]])
    # The judge says "real" with probability 3/4 of both.
    assert discriminator_loss(_judge(), real, made).item() == pytest.approx(-math.log(3 / 4) - math.log(1 / 4))
    assert generator_loss(_judge(), made).item() == pytest.approx(-math.log(3 / 4))


def test_only_the_discriminator_learns_from_telling() -> None:
    judge, real, made = _judge(), torch.ones(2, 1, requires_grad=True), torch.ones(2, 1, requires_grad=True)
    discriminator_loss(judge, real, made).backward()
    assert (real.grad, made.grad) == (None, None)
    assert judge.weight.grad is not None


def test_only_the_maker_learns_from_fooling() -> None:
    judge, made = _judge(), torch.ones(2, 1, requires_grad=True)
    generator_loss(judge, made).backward()
    assert judge.weight.grad is None
    assert made.grad is not None
    assert (made.grad < 0).all()  # larger values pass for real


def test_a_discriminator_has_its_hidden_layers_and_one_logit() -> None:
    judge = discriminator(7, widths=(5, 3), slope=0.2)
    assert [layer.out_features for layer in judge if isinstance(layer, nn.Linear)] == [5, 3, 1]
    assert judge(torch.zeros(4, 7)).shape == (4, 1)
