"""What the deep methods share: options, two hash networks, and the way from pairs to a model.

The baselines follow one protocol: features are fixed; each modality has a network D -> 1024 -> K with ReLU in the
hidden layer and the original's activation at the end; weights start Xavier-uniform; Adam minimises the original's loss.
Scaling of the features, batch normalisation, dropout, schedule and epochs are options of all (``NetworkConfig``). The
file of a baseline has its loss, its weights, and its departures from the original.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from rmsh.core.types import MODALITIES
from rmsh.data.pairs import Pairs, dense_rows
from rmsh.methods.base import HashFunctions, Method, MethodConfig, Run
from rmsh.training.loop import Batch, Schedule, Shape, TrainingSet, batch_size, enough_epochs, train
from rmsh.training.networks import HashNetwork, InputScaling, Scaling

# Rows that pass the networks at once outside of training steps.
_BLOCK = 4096


class DeepConfig(MethodConfig):
    """Options of every deep method."""

    hidden: int = Field(1024, ge=1, description="width of the hidden layer")
    epochs: int | None = Field(None, ge=1, description="passes over the pairs; none: the default, more for few pairs")
    batch: int | None = Field(128, ge=3, description="items per step")
    learning_rate: float = Field(1e-3, gt=0, description="initial learning rate of Adam")


class NetworkConfig(DeepConfig):
    """Options of every method with two hash networks, so that all can be tuned alike."""

    scaling: Scaling = Field("standardise", description="of the features: one factor for all, or each standardised")
    batch_norm: bool = Field(False, description="batch normalisation before the last activation")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout rate in the hidden layer")
    schedule: Shape = Field("linear", description="course of the learning rate")

    def network(self) -> dict[str, Any]:
        """The arguments of HashObjective that follow from options."""
        return self.model_dump(include={"hidden", "scaling", "batch_norm", "dropout"})


class HashObjective(nn.Module):
    """Two hash networks, each with ``outputs`` values; a method adds its loss, and further networks if it has any.

    ``data`` determines the widths and the scaling of the inputs.
    """

    def __init__(self, data: TrainingSet, outputs: int, *, scaling: Scaling = "standardise", **network: Any) -> None:
        super().__init__()
        self.epoch = 0
        self.image, self.text = (
            HashNetwork(InputScaling(features, scaling), outputs, **network) for features in data.present_features()
        )

    def export(self) -> HashFunctions:
        """The hash functions as plain arrays."""
        return {"image": self.image.export(), "text": self.text.export()}

    def facts(self) -> dict[str, Any]:
        """What users should know about the trained objective; plain JSON values."""
        return {}

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:  # noqa: ARG002  # for methods that need the data
        """Called by the loop before each epoch; the epoch determines the stage of training."""
        self.epoch = epoch


class SweepingObjective(HashObjective):
    """Trains one network at a time: an epoch is a pass over the images followed by a pass over the texts.

    The outputs of both networks for all training items are stored and constant during a pass; after a pass those of the
    trained network are computed again.
    """

    outputs: Tensor  # (2, N, K), F of the images and G of the texts

    def __init__(self, data: TrainingSet, config: NetworkConfig) -> None:
        super().__init__(data, config.bits, output="none", **config.network())
        self.register_buffer("outputs", torch.zeros(2, len(data), config.bits))
        self.side = 0  # index of the network in training
        self.mean = torch.zeros(config.bits)  # of its stored outputs

    @property
    def network(self) -> HashNetwork:
        """The network in training."""
        return self.text if self.side else self.image

    def inputs(self, batch: Batch) -> Tensor:
        """The features for the network in training."""
        return batch.texts if self.side else batch.images

    def mean_output(self, rows: Tensor, f: Tensor) -> Tensor:
        """An estimate of F'1 / N, (K,): the mean stored output plus the change of the batch, whose outputs are f."""
        return self.mean + (f - self.outputs[self.side][rows]).mean(dim=0)

    def prefixed(self, terms: dict[str, Tensor]) -> dict[str, Tensor]:
        """Loss terms with the modality in training in their names."""
        return {f"{MODALITIES[self.side]} {name}": term for name, term in terms.items()}

    @torch.no_grad()
    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        """Store the outputs of the network trained last (of both at the start), and switch to the other."""
        self.eval()
        for self.side in (0, 1) if epoch == 0 else (1 - epoch % 2,):
            for start in range(0, len(data), _BLOCK):
                batch = data.batch(np.arange(start, min(start + _BLOCK, len(data))))
                self.outputs[self.side, batch.rows] = self.network(self.inputs(batch))
        self.train()
        self.side = epoch % 2
        self.mean = self.outputs[self.side].mean(dim=0)


class DeepMethod(Method):
    """A method that learns hash networks by gradient descent."""

    default_epochs: ClassVar[int]
    original_epochs: ClassVar[str | None] = None  # what the authors used, for people
    passes: ClassVar[int] = 1  # over the pairs, per epoch
    shape: ClassVar[Shape] = "linear"  # of the learning rate
    Config: ClassVar[type[MethodConfig]] = DeepConfig
    config: DeepConfig

    @abstractmethod
    def _objective(self, data: TrainingSet) -> HashObjective:
        """The untrained objective."""

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:
        labels = np.zeros((len(pairs), 0), np.uint8) if pairs.labels is None else np.asarray(pairs.labels)
        present = np.stack([pairs.has_image, pairs.has_text])
        data = TrainingSet(pairs.features("image"), pairs.features("text"), labels, present)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            objective = self._objective(data)
        stages = self._stages(len(data))
        facts |= {"epochs": sum(stage.epochs for stage in stages) // self.passes, "batch": stages[0].batch}
        if self.original_epochs is not None:
            facts["original_epochs"] = self.original_epochs
        facts["history"] = train(
            objective,
            data,
            stages=stages,
            seed=self.config.seed,
            checkpoint=run.checkpoint,
            fingerprint=self._fingerprint(pairs),
            on_progress=run.on_progress,
        )
        facts |= objective.facts()
        return objective.export()

    def _stages(self, items: int) -> list[Schedule]:
        """Few pairs make few steps per epoch: batches shrink and epochs multiply until there are enough steps."""
        batch = batch_size(items, self.config.batch)
        return [Schedule(self.passes * self._epochs(items), batch, self.config.learning_rate, self.shape)]

    def _epochs(self, items: int) -> int:
        batch = batch_size(items, self.config.batch)
        return self.config.epochs or enough_epochs(items, batch, usual=self.default_epochs)

    def _fingerprint(self, pairs: Pairs) -> str:
        """Identifies a run by method version, options and data: IDs, labels and a sample of the features."""
        digest = sha256(f"{self.name} {self.version} {self.config.model_dump_json()}".encode())
        digest.update(np.ascontiguousarray(pairs.ids).tobytes())
        if pairs.labels is not None:
            digest.update(np.ascontiguousarray(pairs.labels).tobytes())
        sample = np.linspace(0, len(pairs) - 1, num=min(len(pairs), 64), dtype=np.int64)
        for modality in MODALITIES:
            digest.update(dense_rows(pairs.features(modality), sample).tobytes())
            digest.update(pairs.has(modality).tobytes())
        return digest.hexdigest()


class NetworkMethod(DeepMethod):
    """A deep method with the options of NetworkConfig: its objective takes ``config.network()``."""

    stages: ClassVar[int] = 1  # parts of equal length that the passes are divided into, each with its own schedule
    Config: ClassVar[type[MethodConfig]] = NetworkConfig
    config: NetworkConfig

    def _stages(self, items: int) -> list[Schedule]:
        (whole,) = super()._stages(items)
        return self.stages * [replace(whole, epochs=whole.epochs // self.stages, shape=self.config.schedule)]
