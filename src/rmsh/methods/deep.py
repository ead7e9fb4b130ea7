"""What the deep baselines share: options, the two networks, and the way from pairs to a model.

All follow one protocol: features are fixed; each modality has a network D -> 1024 -> K, ReLU in the middle and the
original's activation at the end; features are standardised; weights start Xavier-uniform; Adam minimises the original's
loss. A baseline's own file has its loss, its weights, and where it departs from the original.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from rmsh.methods.base import Method, MethodConfig, Run
from rmsh.model import Model
from rmsh.training.loop import Batch, Schedule, Shape, TrainingSet, enough_epochs, fitting_batch, train
from rmsh.training.networks import HashNetwork, InputScaling

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.data.pairs import Pairs
    from rmsh.hash_function import Activation, HashFunction

__all__ = ["DeepConfig", "DeepMethod", "HashObjective", "SweepingObjective"]

# Rows that pass the networks at once where nothing is learned.
_BLOCK = 4096


class DeepConfig(MethodConfig):
    """What every deep baseline has."""

    hidden: int = Field(1024, ge=1, description="width of the hidden layer")
    epochs: int | None = Field(None, ge=1, description="passes over the pairs; None: enough, see the model's facts")
    batch: int = Field(128, ge=3, description="items a step")
    learning_rate: float = Field(1e-3, gt=0, description="of Adam, where it begins")


class HashObjective(nn.Module):
    """Two hash networks; a method adds what else learns, and the loss.

    Args:
        data: gives the widths and the scaling of the inputs.
        config: gives the width of the hidden layer.
        output: the activation at the end.
        outputs: how many values a network gives; K where not given.
        batch_norm: normalise over the batch before the activation at the end.
    """

    def __init__(
        self,
        data: TrainingSet,
        config: DeepConfig,
        *,
        output: Activation,
        outputs: int | None = None,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        width = config.bits if outputs is None else outputs
        self.image, self.text = (
            HashNetwork(
                InputScaling(features),
                width,
                hidden=config.hidden,
                activation="relu",
                output=output,
                batch_norm=batch_norm,
            )
            for features in (data.images, data.texts)
        )

    def export(self) -> dict[Modality, HashFunction]:
        """The hash functions as plain arrays."""
        return {"image": self.image.export(), "text": self.text.export()}


class SweepingObjective(HashObjective):
    """One network learns at a time: a pass over the pictures, then one over the texts, which together are an epoch.

    The outputs of both networks for all training items are kept, and are constants of a pass; a network's are made anew
    when it has learned.
    """

    outputs: Tensor  # (2, N, K), F of the pictures and G of the texts

    def __init__(self, data: TrainingSet, config: DeepConfig, *, output: Activation) -> None:
        super().__init__(data, config, output=output)
        self.register_buffer("outputs", torch.zeros(2, len(data), config.bits))
        self.side = 0  # which network learns
        self.mean = torch.zeros(config.bits)  # of its kept outputs

    @property
    def network(self) -> HashNetwork:
        """The one that learns."""
        return self.text if self.side else self.image

    def inputs(self, batch: Batch) -> Tensor:
        """The features that the learning network takes."""
        return batch.texts if self.side else batch.images

    def mean_output(self, rows: Tensor, f: Tensor) -> Tensor:
        """F'1 / N, (K,): the mean of the kept outputs, moved as the batch has moved since; f are its outputs now."""
        kept = self.outputs[self.side]
        return self.mean + (f - kept[rows]).mean(dim=0)

    @torch.no_grad()
    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        """Keep the outputs of the network that learned last, of both at the start, and let the other one learn."""
        for self.side in (0, 1) if epoch == 0 else (1 - epoch % 2,):
            for start in range(0, len(data), _BLOCK):
                batch = data.batch(np.arange(start, min(start + _BLOCK, len(data))))
                self.outputs[self.side, batch.rows] = self.network(self.inputs(batch))
        self.side = epoch % 2
        self.mean = self.outputs[self.side].mean(dim=0)


class DeepMethod(Method):
    """A method that learns two hash networks by gradient descent."""

    default_epochs: ClassVar[int]
    original_epochs: ClassVar[str]  # what the original's authors used, for people
    passes: ClassVar[int] = 1  # over the pairs, in an epoch
    shape: ClassVar[Shape] = "linear"  # of the learning rate
    config: DeepConfig

    @abstractmethod
    def _objective(self, data: TrainingSet) -> HashObjective:
        """What is minimised."""

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:
        config = self.config
        labels = np.zeros((len(pairs), 0), np.uint8) if pairs.labels is None else np.asarray(pairs.labels)
        data = TrainingSet(pairs.features("image"), pairs.features("text"), labels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            objective = self._objective(data)
        schedule = self._schedule(len(data))
        facts |= {
            "epochs": schedule.epochs // self.passes,
            "original_epochs": self.original_epochs,
            "batch": schedule.batch,
        }
        facts["history"] = train(objective, data, schedule=schedule, seed=config.seed, **self._run_options(pairs, run))
        return self._model(objective, facts)

    def _model(self, objective: HashObjective, facts: dict[str, Any]) -> Model:
        return Model(objective.export(), self.name, self.config.model_dump(), facts)

    def _schedule(self, items: int) -> Schedule:
        batch = fitting_batch(items, self.config.batch)
        return Schedule(self.passes * self._epochs(items), batch, self.config.learning_rate, self.shape)

    def _epochs(self, items: int) -> int:
        """As the user says, or the method's own number; few pairs pass more often."""
        batch = fitting_batch(items, self.config.batch)
        return self.config.epochs or enough_epochs(items, batch, usual=self.default_epochs)
