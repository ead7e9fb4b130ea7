"""EGDH: equally-guided discriminative hashing (Shi, You, Zheng, Wang, Peng, IJCAI 2019), a reading.

Known from the abstract: a label network encodes the distinct label sets as codes; these form one classifier W, common
to both modalities; the image and text networks, guided equally, learn outputs that W classifies easily and that lie
close to their own row of W. The rest is our reading. The label network, with outputs w, minimises the likelihood of
shared labels with theta = w_i . w_j / 2, and quantisation |w - sgn w|^2 / K; then W = sgn w stays. With y(i) the label
set of item i, each modality minimises

    mean_i -log (exp(h_i . w_y(i)) / sum_j exp(h_i . w_j)) + gamma |h_i - w_y(i)|^2,

where j runs over the label sets of the batch and 1,024 random others, because COCO has thousands. The abstract does
not say whether an image network is trained from pixels; if so, this is lost on frozen features.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import half_products, pairwise_loss, quantisation_loss, share_a_label, signs


class EGDHConfig(NetworkConfig):
    """Options of EGDH."""

    quantisation: float = Field(0.1, ge=0, description="weight of quantising the codes of label sets")
    gamma: float = Field(0.1, ge=0, description="weight of the distance to the code of the own label set")
    others: int = Field(1024, ge=0, description="random label sets that a batch is compared with")


class EGDH(NetworkMethod):
    """Equally-guided discriminative hashing, as far as the abstract describes it."""

    name = "egdh-reading"
    summary = "a reading of the abstract: codes of label sets first, which then classify both modalities"
    reference = "Shi, You, Zheng, Wang, Peng: Equally-Guided Discriminative Hashing, IJCAI 2019"
    Config = EGDHConfig
    default_epochs = 10
    original_epochs = "not known"
    passes = stages = 2
    config: EGDHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config, label_epochs=self._epochs(len(data)))


class Objective(HashObjective):
    """The loss of the label network for its epochs, then those of both modalities."""

    sets: Tensor  # (M, C), the distinct label sets
    set_of: Tensor  # (N,), the label set of each item

    def __init__(self, data: TrainingSet, config: EGDHConfig, *, label_epochs: int) -> None:
        super().__init__(data, config.bits, **config.network())
        self.config, self.label_epochs = config, label_epochs
        sets, set_of = np.unique(data.labels, axis=0, return_inverse=True)
        self.register_buffer("sets", torch.from_numpy(sets).float(), persistent=False)
        self.register_buffer("set_of", torch.from_numpy(set_of.ravel()), persistent=False)
        layers = nn.Linear(sets.shape[1], config.hidden), nn.ReLU(), nn.Linear(config.hidden, config.bits), nn.Tanh()
        self.labels = nn.Sequential(*layers)

    def forward(self, batch: Batch) -> Losses:
        own = self.set_of[batch.rows]
        if self.epoch < self.label_epochs:
            return Losses(self._label_terms(self.sets[torch.unique(own)]))
        others = torch.randint(len(self.sets), (self.config.others,))
        compared, position = torch.unique(torch.cat([own, others]), return_inverse=True)
        with torch.no_grad():
            w = signs(self.labels(self.sets[compared]))
        terms: dict[str, Tensor] = {}
        for name, h in (("image", self.image(batch.images)), ("text", self.text(batch.texts))):
            target = position[: len(h)]
            terms[f"{name} classes"] = F.cross_entropy(h @ w.T, target)
            terms[f"{name} distance"] = self.config.gamma * quantisation_loss(h, w[target]).mean()
        return Losses(terms)

    def _label_terms(self, sets: Tensor) -> dict[str, Tensor]:
        w = self.labels(sets)
        quantised = quantisation_loss(w, signs(w)).mean() / self.config.bits
        return {
            "label likelihood": pairwise_loss(half_products(w, w), share_a_label(sets, sets)),
            "label quantisation": self.config.quantisation * quantised,
        }
