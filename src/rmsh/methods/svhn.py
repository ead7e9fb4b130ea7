"""SVHN: separated variational hashing networks (Hu, Wang, Zhen, Lin, Peng, ACM Multimedia 2019).

First a label network gives labels a code: u = g(l), h = sgn(u). With S_ij = u_i.u_j / 2 and D_ij = 1 where labels share
one, over the n items of a batch,

    1/n sum_ij (log(1 + exp(S_ij)) - D_ij S_ij) + lambda/n sum_i | |u_i| - 1 |^2.

Then each modality learns by itself to give these codes: its network puts out a mean mu and a variance sigma^2 of a
normal distribution, from which z = mu + sigma * noise is drawn, and minimises

    1/2n sum (mu^2 + sigma^2 - log sigma^2 - 1) + beta/n sum_i | h_i - z_i |^2;

the code is sgn(mu).

The original codes the *database* by its ground-truth labels, through the label network. That is no retrieval of unseen
items, and the default codes them by their own modality. With ``database_codes="labels"``, ``encode_database`` does as
the original, after ``fit``; a saved model codes one modality at a time.

Departures, besides those of deep.py:
- one sample of z an item (their number is not stated), and log sigma^2 as what the network puts out (nor is that);
- the label network is C -> 1024 -> 512 -> K, the original's C -> 2048 -> 512 -> K;
- Adam at 1e-3 and 15 epochs of each stage, not 1e-4 and 200 for the labels, 100 for a modality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from rmsh.codes import Codes
from rmsh.core.errors import DataError
from rmsh.methods.deep import DeepConfig, DeepMethod, HashObjective
from rmsh.training.loop import Batch, Outcome, TrainingSet
from rmsh.training.losses import half_products, pairwise_loss, quantisation_loss, share_a_label
from rmsh.training.networks import HashNetwork, LabelNetwork

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

__all__ = ["SVHN", "Objective", "SVHNConfig", "divergence"]


class SVHNConfig(DeepConfig):
    """Options of SVHN."""

    quantisation: float = Field(0.1, ge=0, description="lambda, of the label network's codes")
    beta: float = Field(10.0, ge=0, description="weight of being near the labels' code")
    batch: int = Field(100, ge=3, description="items a step")
    database_codes: Literal["modality", "labels"] = Field("modality", description="what codes a database item")


class SVHN(DeepMethod):
    """Separated variational hashing networks.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = SVHN(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "svhn"
    summary = "codes of the labels first, then a variational network for each modality that learns to give them"
    reference = "Hu, Wang, Zhen, Lin, Peng: Separated Variational Hashing Networks for Cross-Modal Retrieval, MM 2019"
    Config = SVHNConfig
    default_epochs = 15
    original_epochs = "200 of the label network, 100 of the others"
    passes = 2
    shape = "constant"
    config: SVHNConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config, label_epochs=self._epochs(len(data)))

    def _model(self, objective: HashObjective, facts: dict[str, Any]) -> Model:
        self.label_function_ = cast("Objective", objective).labels.export()
        return super()._model(objective, facts)

    def encode_database(self, pairs: Pairs, modality: Modality) -> Codes:
        """The codes of one modality, or with ``database_codes="labels"`` those of the items' own labels.

        Raises:
            DataError: the labels' codes are asked for and an item has no label.
        """
        codes = super().encode_database(pairs, modality)
        if self.config.database_codes == "modality":
            return codes
        bare = int((~pairs.labelled).sum())
        if bare or pairs.labels is None:
            raise DataError(
                f"{pairs.source}: {bare} items have no label, and codes of labels were asked for; leave them out, or "
                'choose database_codes="modality".'
            )
        return Codes.from_values(self.label_function_(pairs.labels), pairs.ids)


class Objective(HashObjective):
    """The loss of the label network for its epochs, then those of both modalities, which share nothing."""

    def __init__(self, data: TrainingSet, config: SVHNConfig, *, label_epochs: int) -> None:
        super().__init__(data, config, output="none")
        self.config, self.label_epochs, self.epoch = config, label_epochs, 0
        widths = (config.hidden, -(-config.hidden // 2))
        self.labels = LabelNetwork(data.labels.shape[1], config.bits, widths=widths, output="none")
        self.image_spread, self.text_spread = (nn.Linear(config.hidden, config.bits) for _ in range(2))

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:  # noqa: ARG002  # the loop's protocol
        """Know which stage it is."""
        self.epoch = epoch

    def forward(self, batch: Batch) -> Outcome:
        if self.epoch < self.label_epochs:
            return Outcome(self._label_terms(batch.labels))
        with torch.no_grad():
            h = torch.where(self.labels(batch.labels) >= 0, 1.0, -1.0)
        return Outcome(
            {
                **self._modality_terms("image", self.image, self.image_spread, batch.images, h),
                **self._modality_terms("text", self.text, self.text_spread, batch.texts, h),
            }
        )

    def _label_terms(self, labels: Tensor) -> dict[str, Tensor]:
        u, n = self.labels(labels), len(labels)
        return {
            "label likelihood": n * pairwise_loss(half_products(u, u), share_a_label(labels, labels)),
            "label quantisation": self.config.quantisation * (u.abs() - 1).square().sum() / n,
        }

    def _modality_terms(
        self, name: str, network: HashNetwork, spread: nn.Linear, features: Tensor, h: Tensor
    ) -> dict[str, Tensor]:
        representation = network.represent(network.scaling(features))
        mean, log_variance = network.code(representation), spread(representation)
        z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        return {
            f"{name} divergence": divergence(mean, log_variance).mean(),
            f"{name} code": self.config.beta * quantisation_loss(z, h).mean(),
        }


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of N(mean, variance) from N(0, 1), summed over the bits, (n,).

    Example:
        >>> divergence(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 0.0]])).tolist()
        [2.0]
    """
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=1)
