"""The contract of a method: options in, ``fit`` on pairs, a ``Model`` out.

A method is a class with a ``Config`` and a ``_learn``. Its constructor stores checked options and does nothing else;
``fit`` validates, learns and returns the method; what was learned is in ``model_``. Everything random follows from
``seed``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from rmsh.codes import MAX_BITS
from rmsh.core.config import Config
from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES
from rmsh.data.pairs import dense_rows

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, Features, FloatArray, Modality
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

__all__ = ["Method", "MethodConfig", "Run"]

_LEAST_ITEMS = 3  # of each modality
_THINGS: Mapping[Modality, str] = {"image": "a picture", "text": "a text"}


class MethodConfig(Config):
    """What every method has."""

    bits: int = Field(64, ge=1, le=MAX_BITS, description="length of a code")
    seed: int = Field(0, ge=0, description="everything random follows from it")


@dataclass(frozen=True)
class Run:
    """How a fit is carried out, beside what is learned: where to keep checkpoints, whom to tell."""

    checkpoint: Path | None = None
    on_progress: OnProgress = ignore


class Method(ABC):
    """Learns hash functions for pictures and texts.

    Args:
        preset: a named set of options.
        options: fields of the method's ``Config``; they win over the preset.

    Raises:
        ConfigError: a preset or an option is unknown, or a value is out of range.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    supervised: ClassVar[bool] = True
    needs_both: ClassVar[bool] = True  # whether an item with a picture or a text alone is skipped
    Config: ClassVar[type[MethodConfig]] = MethodConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init__(self, *, preset: str | None = None, **options: Any) -> None:
        if preset is not None and preset not in self.presets:
            known = ", ".join(self.presets) or "none"
            raise ConfigError(f"{self.name} has no preset {preset!r}; known are: {known}.")
        chosen = {} if preset is None else self.presets[preset]
        self.config = self.Config.parse({**chosen, **options})
        self.preset = preset
        self.model_: Model | None = None

    def fit(
        self, pairs: Pairs, *, strict: bool = False, checkpoint: Path | None = None, on_progress: OnProgress = ignore
    ) -> Self:
        """Learn from the complete items of ``pairs``: with labels if the method is supervised, and both modalities.

        A method that does not need both learns from an item with one alone as well.

        Args:
            pairs: with feature columns.
            strict: refuse incomplete items instead of skipping and counting them.
            checkpoint: a file to go on from, and to keep the state of the run in.
            on_progress: is told of every epoch.

        Raises:
            DataError: a modality is missing or raw, no item is complete, or ``strict`` and some are not.
        """
        complete, skipped = self._complete(pairs)
        if strict and skipped:
            listed = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
            raise DataError(f"{pairs.source}: {listed}, and strict was asked for; complete these items or drop strict.")
        self.model_ = self._learn(complete, Run(checkpoint, on_progress), {"skipped": skipped, "items": len(complete)})
        return self

    @classmethod
    def learns_from(cls, pairs: Pairs) -> BitArray:
        """(n,) which items have all that is needed; raw ones count as well.

        Raises:
            DataError: too few have.
        """
        has_all: BitArray = np.logical_and.reduce(list(cls._needed(pairs).values()))
        for modality, thing in _THINGS.items():
            count = int((has_all & pairs.has(modality)).sum())
            if count < _LEAST_ITEMS:
                things = [*(_THINGS.values() if cls.needs_both else (thing,)), *(("labels",) if cls.supervised else ())]
                raise DataError(
                    f"{pairs.source}: {count} of {len(pairs)} items have {', '.join(things[:-1])} and {things[-1]}, "
                    f"from which {cls.name} learns; at least {_LEAST_ITEMS} are needed."
                )
        return has_all

    @classmethod
    def _needed(cls, pairs: Pairs) -> dict[str, BitArray]:
        """Which items have what is needed, by the reason to skip the others."""
        needed = {"without image": pairs.has_image, "without text": pairs.has_text}
        if not cls.needs_both:
            needed = {"without image and text": pairs.has_image | pairs.has_text}
        return needed | {"without labels": pairs.labelled} if cls.supervised else needed

    def _complete(self, pairs: Pairs) -> tuple[Pairs, dict[str, int]]:
        """The items that can be learned from, and how many were left out for which reason."""
        for modality in MODALITIES:
            pairs.features(modality)
        skipped = {reason: int((~has).sum()) for reason, has in self._needed(pairs).items() if not has.all()}
        keep = self.learns_from(pairs)
        return (pairs if keep.all() else pairs.take(keep)), skipped

    @abstractmethod
    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:
        """Learn from items that have what is needed; ``facts`` is to be extended and put into the model."""

    def _run_options(self, pairs: Pairs, run: Run) -> dict[str, Any]:
        """What the training loop needs to know of a run; the fingerprint ties a checkpoint to options and data."""
        return {
            "checkpoint": run.checkpoint,
            "on_progress": run.on_progress,
            "fingerprint": _fingerprint(self.config, pairs),
        }

    @property
    def model(self) -> Model:
        """What was learned.

        Raises:
            InputError: nothing was learned yet.
        """
        if self.model_ is None:
            raise InputError(f"This {self.name} has not learned yet; call fit(pairs) first.")
        return self.model_

    def project(self, features: Features, modality: Modality) -> FloatArray:
        """The relaxed codes, float32 (n, bits)."""
        return self.model.project(features, modality)

    def encode(self, features: Features, modality: Modality, *, ids: ArrayLike | None = None) -> Codes:
        """The binary codes."""
        return self.model.encode(features, modality, ids=ids)

    def encode_database(self, pairs: Pairs, modality: Modality) -> Codes:
        """The codes by which items of a database are found in one modality: those of :meth:`encode`.

        A method whose original codes a database from more than that modality, such as from the labels or from picture
        and text together, does so here where an option asks for it.
        """
        return self.encode(pairs.features(modality), modality, ids=pairs.ids)

    def save(self, folder: Path | str) -> None:
        """Write what was learned as a model folder; ``rmsh.load`` reads it."""
        self.model.save(folder)


def _fingerprint(config: MethodConfig, pairs: Pairs) -> str:
    """Names a run by its options and data: ids, labels and a sample of the features."""
    digest = sha256(config.model_dump_json().encode())
    digest.update(np.ascontiguousarray(pairs.ids).tobytes())
    if pairs.labels is not None:
        digest.update(np.ascontiguousarray(pairs.labels).tobytes())
    sample = np.linspace(0, len(pairs) - 1, num=min(len(pairs), 64), dtype=np.int64)
    for modality in MODALITIES:
        digest.update(dense_rows(pairs.features(modality), sample).tobytes())
        if not pairs.has(modality).all():
            digest.update(pairs.has(modality).tobytes())
    return digest.hexdigest()
