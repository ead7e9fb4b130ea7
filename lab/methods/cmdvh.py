"""CMDVH: cross-modal deep variational hashing (Liong, Lu, Tan, Zhou, ICCV 2017), a reading.

Known from the abstract: a network of image-text pairs learns one binary code per pair; then a probabilistic network per
modality learns a latent variable that approaches this code, its posterior kept close to a known prior. The rest is our
reading. First, with h the output for a pair, b = sgn h and v_c the rows of a linear classifier,

    mean_i sum_c [1 - y_ic v_c . h_i]+ + quantisation |h - b|^2 / K, y = -1 or 1.

Then, as in SVHN, each modality has a mean mu and a variance sigma^2, with z = mu + sigma * noise,

    1/2 sum (mu^2 + sigma^2 - log sigma^2 - 1) + beta |b - z|^2;

the code is sgn(mu), of queries and database alike. Outputs for pairs are normalised over the batch: most items lack
most labels, so that without it one output that denies them all is nearly best, and 60 of 64 bits are constant. The
abstract does not say whether an image network is trained from pixels; if so, this is lost on frozen features.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod
from rmsh.methods.svhn import divergence
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import quantisation_loss, signs


class CMDVHConfig(NetworkConfig):
    """Options of CMDVH."""

    quantisation: float = Field(0.1, ge=0, description="weight of quantising the codes of pairs")
    beta: float = Field(10.0, ge=0, description="weight of the distance to the code of the pair")


class CMDVH(NetworkMethod):
    """Cross-modal deep variational hashing, as far as the abstract describes it."""

    name = "cmdvh-reading"
    version = 2
    summary = "a reading of the abstract: codes of pairs first, then one variational network per modality"
    reference = "Liong, Lu, Tan, Zhou: Cross-Modal Deep Variational Hashing, ICCV 2017"
    Config = CMDVHConfig
    default_epochs = 10
    original_epochs = "not known"
    passes = stages = 2
    config: CMDVHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config, pair_epochs=self._epochs(len(data)))


class Objective(HashObjective):
    """The loss of the network of pairs for its epochs, then those of both modalities."""

    def __init__(self, data: TrainingSet, config: CMDVHConfig, *, pair_epochs: int) -> None:
        super().__init__(data, config.bits, output="none", **config.network())
        self.config, self.pair_epochs = config, pair_epochs
        inputs = data.images.shape[1] + data.texts.shape[1]
        layers = nn.Linear(inputs, config.hidden), nn.ReLU(), nn.Linear(config.hidden, config.bits)
        self.pairs = nn.Sequential(*layers, nn.BatchNorm1d(config.bits), nn.Tanh())
        self.classifier = nn.Linear(config.bits, data.labels.shape[1])
        self.image_spread, self.text_spread = (nn.Linear(config.hidden, config.bits) for _ in range(2))

    def forward(self, batch: Batch) -> Losses:
        x, y = self.image.scaling(batch.images), self.text.scaling(batch.texts)
        h = self.pairs(torch.cat([x, y], dim=1))
        if self.epoch < self.pair_epochs:
            return Losses(
                {
                    "labels": F.relu(1 - (2 * batch.labels - 1) * self.classifier(h)).sum(dim=1).mean(),
                    "quantisation": self.config.quantisation * quantisation_loss(h, signs(h)).mean() / self.config.bits,
                }
            )
        terms: dict[str, Tensor] = {}
        sides = (("image", self.image, self.image_spread, x), ("text", self.text, self.text_spread, y))
        for name, network, spread, scaled in sides:
            hidden = network.represent(scaled)
            mean, noise = network.code(hidden), torch.randn(len(h), self.config.bits)
            terms[name] = variational_loss(mean, spread(hidden), noise, signs(h), beta=self.config.beta)
        return Losses(terms)


def variational_loss(mean: Tensor, log_variance: Tensor, noise: Tensor, b: Tensor, *, beta: float) -> Tensor:
    """The mean divergence from the prior plus beta times the squared distance of z to the codes b, all (n, K)."""
    z = mean + (0.5 * log_variance).exp() * noise
    return divergence(mean, log_variance).mean() + beta * quantisation_loss(z, b).mean()
