"""Label noise: the probability that an item has its own labels and not those of another item.

Model: a share s of the items has its own labels; every other item has the labels of some other item. Classifiers in an
early epoch have learned common patterns but have not memorised single items. Their logits are first calibrated to the
labels by a logistic regression with three parameters per classifier, so that an uninformative classifier predicts the
label frequencies f. Where the calibrated probability is p, an item's own labels have the probability
q = (p - (1 - s) f) / s, and labels of another item have f. The odds that an item has its own labels are therefore
s P(labels | q) to (1 - s) P(labels | f), and s is the mean of the resulting probabilities (expectation maximisation).
The image and text classifiers are treated as independent, so their odds multiply; docs/explanation/glint.md has more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from torch import Tensor

_ROUNDS, _NEWTON_STEPS = 30, 12
_MAX_CORRECT = 0.9999  # keeps the odds finite
_MIN_PROBABILITY = 1e-3  # lower bound of what a classifier can claim; also the smallest Newton step


class LabelModel(NamedTuple):
    """Label frequencies, calibrated classifiers, and the share of items with correct labels."""

    frequencies: Tensor  # f, (C,)
    calibration: Tensor  # (M, 3): factors of a classifier's logit, of the logit of the frequency, and a constant
    correct: float  # s

    def probabilities(self, logits: Tensor) -> Tensor:
        """The calibrated probabilities p, (M, n, C), of logits of that shape."""
        of_logit, of_frequency, constant = self.calibration.T[:, :, None, None]
        return torch.sigmoid(of_logit * logits + of_frequency * self.frequencies.logit() + constant)


def fit_label_model(logits: Tensor, labels: Tensor, present: Tensor | None = None) -> LabelModel:
    """Estimate the share of items with correct labels.

    ``logits`` are (M, n, C) of M classifiers, ``labels`` (n, C) 0 or 1, possibly wrong. ``present``, (M, n), says which
    items each classifier has features for, by default all.

    Example:
        >>> logits = torch.tensor([[4.0, -4.0]] * 10 + [[-4.0, 4.0]] * 10)
        >>> labels = (logits > 0).float()
        >>> labels[19] = labels[0]  # the last of ten items of each kind has the wrong label
        >>> round(fit_label_model(logits[None], labels).correct, 1)
        0.9
    """
    frequencies = labels.mean(dim=0).clamp(1e-6, 1 - 1e-6)
    known = torch.ones(logits.shape[:2], dtype=torch.bool) if present is None else present
    calibrations = [_calibrate(z[has], labels[has], frequencies) for z, has in zip(logits, known, strict=True)]
    model = LabelModel(frequencies, torch.stack(calibrations), 0.9)
    for _ in range(_ROUNDS):
        correct = probability_correct(logits, labels, model, known).mean().item()
        model = model._replace(correct=min(max(correct, 1 - _MAX_CORRECT), _MAX_CORRECT))
    return model


def probability_correct(logits: Tensor, labels: Tensor, model: LabelModel, present: Tensor | None = None) -> Tensor:
    """The probability that each item has its own labels, (n,); arguments as for :func:`fit_label_model`."""
    frequencies, correct = model.frequencies, model.correct
    own = (model.probabilities(logits) - (1 - correct) * frequencies) / correct
    own = own.clamp(_MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    log_odds = _log_likelihood(own, labels) - _log_likelihood(frequencies, labels)
    if present is not None:
        log_odds = log_odds * present
    return torch.sigmoid(log_odds.sum(dim=0) + math.log(correct / (1 - correct)))


def _log_likelihood(probabilities: Tensor, labels: Tensor) -> Tensor:
    return (labels * probabilities.log() + (1 - labels) * (1 - probabilities).log()).sum(dim=-1)


def _calibrate(logits: Tensor, labels: Tensor, frequencies: Tensor) -> Tensor:
    """Newton's method, starting from the frequencies alone; a step that does not lower the loss is halved."""
    frequency_logits = frequencies.logit().expand_as(logits)
    inputs = torch.stack([logits, frequency_logits, torch.ones_like(logits)]).flatten(1).double()
    targets = labels.flatten().double()
    weights = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)

    def loss(candidate: Tensor) -> float:
        return F.binary_cross_entropy_with_logits(candidate @ inputs, targets).item()

    for _ in range(_NEWTON_STEPS):
        p = torch.sigmoid(weights @ inputs)
        curvature = (inputs * (p * (1 - p))) @ inputs.T + torch.eye(3, dtype=torch.float64)
        step, current = torch.linalg.solve(curvature, inputs @ (targets - p)), loss(weights)
        while loss(weights + step) > current and step.abs().max() > _MIN_PROBABILITY:
            step = step / 2
        weights = weights + step
    return weights.float()
