"""Heads: what recent methods share, whose losses train two hash networks on frozen features.

Most originals fine-tune both encoders of CLIP with a hash layer, for 100 epochs of 10,000 pairs, and draw a caption of
an image in each of them. Frozen features exclude that, and with it most of the published level; the loss remains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor

from rmsh.data.pairs import dense_rows
from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import HashFunctions, Run
    from rmsh.training.loop import Batch, Losses, TrainingSet


class HeadObjective(HashObjective):
    """A loss of the image outputs f and text outputs g, both (n, K), of a batch; ``epochs`` is the number of epochs."""

    def __init__(self, data: TrainingSet, config: NetworkConfig, *, epochs: int = 1, **network: Any) -> None:
        super().__init__(data, **{"outputs": config.bits, **config.network(), **network})
        self.config: Any = config
        self.epochs = epochs

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        raise NotImplementedError

    def forward(self, batch: Batch) -> Losses:
        return self.loss(self.image(batch.images), self.text(batch.texts), batch)


class HeadMethod(NetworkMethod):
    objective: ClassVar[type[HeadObjective]]
    default_epochs = 20
    original_epochs = "100, with 10,000 pairs"

    def _objective(self, data: TrainingSet) -> HeadObjective:
        return self.objective(data, self.config, epochs=self._epochs(len(data)))


class SampleConfig(NetworkConfig):
    pairs: int = Field(5000, ge=3, description="random training pairs to learn from")


class SampleMethod(HeadMethod):
    """A method without labels that compares the features of all pairs, and so learns from a sample of them."""

    supervised = False
    config: SampleConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:
        drawn = np.random.default_rng(self.config.seed).permutation(len(pairs))[: self.config.pairs]
        facts["sample"] = len(drawn)
        return super()._learn(pairs.take(np.sort(drawn)), run, facts)


def mixed_cosines(data: TrainingSet, image_share: float) -> Tensor:
    """The cosines (N, N) of image features, weighted by their share, plus those of text features."""
    rows = np.arange(len(data))
    image, text = (F.normalize(torch.from_numpy(dense_rows(x, rows)), dim=1) for x in (data.images, data.texts))
    return image_share * image @ image.T + (1 - image_share) * text @ text.T


def contrastive_loss(images: Tensor, texts: Tensor) -> Tensor:
    """The cross-entropy of recognising item i as the counterpart of query i, the sum over both logits (n, m)."""
    own = torch.arange(len(images))
    return F.cross_entropy(images, own) + F.cross_entropy(texts, own)


def lower_negatives(similarities: Tensor, *, margin: float, shift: float) -> Tensor:
    """Similarities (n, n), less ``shift`` where they are more than ``margin`` below that of the row's own pair."""
    return similarities - shift * (similarities < similarities.diagonal()[:, None] - margin)
