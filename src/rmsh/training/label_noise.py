"""How far the labels of an item can be believed: some may be another item's, and those should not be learned by heart.

The model: a share s of the items has its own labels, every other item those of somebody else. Classifiers that have
only begun to learn know what is common, not what is single. They may not know much; so what they say is first made to
agree with the labels in general (a logistic regression of three numbers a classifier), which leaves a classifier that
knows nothing with the frequencies f of the labels. Where it then says p, labels of the item's own have the probability
q = (p - (1 - s) f) / s, and labels from elsewhere f. So the odds that an item has its own labels are s P(labels | q) to
(1 - s) P(labels | f), and s is the mean of what they give (expectation and maximisation in turn). Pictures and texts
are asked apart, and their odds multiply.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from torch import Tensor

_ROUNDS, _NEWTON_STEPS = 30, 12
_MOST_RIGHT = 0.9999  # certainty would leave no room for a doubt
_LEAST = 1e-3  # what a classifier finds impossible happens once in a thousand times


class LabelModel(NamedTuple):
    """What labels are expected with and without knowing an item, and how many items have their own."""

    frequencies: Tensor  # (C,) f
    calibration: Tensor  # (M, 3) of each classifier's logit, the logit of the frequency, and 1
    right: float  # s

    def probabilities(self, logits: Tensor) -> Tensor:
        """p, (M, n, C), of what the classifiers say."""
        of_logit, of_frequency, constant = self.calibration.T[:, :, None, None]
        return torch.sigmoid(of_logit * logits + of_frequency * self.frequencies.logit() + constant)


def fit_label_model(logits: Tensor, labels: Tensor, present: Tensor | None = None) -> LabelModel:
    """The share of items that have their own labels, found from what classifiers say.

    Args:
        logits: (M, n, C) what M classifiers say of each item.
        labels: (n, C) 0 or 1, as they are given.
        present: (M, n) which items a classifier can judge; None: all.

    Example:
        Ten items of either kind, of which the last has the wrong label:

        >>> logits = torch.tensor([[4.0, -4.0]] * 10 + [[-4.0, 4.0]] * 10)
        >>> labels = (logits > 0).float()
        >>> labels[19] = labels[0]
        >>> round(fit_label_model(logits[None], labels).right, 1)
        0.9
    """
    frequencies = labels.mean(dim=0).clamp(1e-6, 1 - 1e-6)
    judged = torch.ones(logits.shape[:2], dtype=torch.bool) if present is None else present
    calibrations = [_calibration(z[has], labels[has], frequencies) for z, has in zip(logits, judged, strict=True)]
    model = LabelModel(frequencies, torch.stack(calibrations), 0.9)
    for _ in range(_ROUNDS):
        right = trust_of(logits, labels, model, judged).mean().item()
        model = model._replace(right=min(max(right, 1 - _MOST_RIGHT), _MOST_RIGHT))
    return model


def trust_of(logits: Tensor, labels: Tensor, model: LabelModel, present: Tensor | None = None) -> Tensor:
    """The probability that each item has its own labels, (n,); a classifier that cannot judge an item says nothing.

    Example:
        A classifier expects the first label of both items, and the second item has another:

        >>> model = LabelModel(torch.tensor([0.5, 0.5]), torch.tensor([[1.0, 0.0, 0.0]]), right=0.8)
        >>> trust_of(torch.tensor([[[1.4, -1.4]] * 2]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]), model)
        tensor([0.9..., 0.1...])
    """
    frequencies, right = model.frequencies, model.right
    own = ((model.probabilities(logits) - (1 - right) * frequencies) / right).clamp(_LEAST, 1 - _LEAST)
    odds = _log_likelihood(own, labels) - _log_likelihood(frequencies, labels)
    if present is not None:
        odds = odds * present
    return torch.sigmoid(odds.sum(dim=0) + math.log(right / (1 - right)))


def _log_likelihood(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Of labels that come independently, (..., n)."""
    return (labels * probabilities.log() + (1 - labels) * (1 - probabilities).log()).sum(dim=-1)


def _calibration(logits: Tensor, labels: Tensor, frequencies: Tensor) -> Tensor:
    """Newton's method from the frequencies alone, (3,); a step that does not help is halved."""
    usual = frequencies.logit().expand_as(logits)
    inputs = torch.stack([logits, usual, torch.ones_like(logits)]).flatten(1).double()
    wanted = labels.flatten().double()
    weights = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    for _ in range(_NEWTON_STEPS):
        p = torch.sigmoid(weights @ inputs)
        curvature = (inputs * (p * (1 - p))) @ inputs.T + torch.eye(3, dtype=torch.float64)
        step, loss = torch.linalg.solve(curvature, inputs @ (wanted - p)), _loss(weights, inputs, wanted)
        while _loss(weights + step, inputs, wanted) > loss and step.abs().max() > _LEAST:
            step = step / 2
        weights = weights + step
    return weights.float()


def _loss(weights: Tensor, inputs: Tensor, wanted: Tensor) -> float:
    return F.binary_cross_entropy_with_logits(weights @ inputs, wanted).item()
