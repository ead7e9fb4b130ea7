"""The contract of a method: options in, ``fit`` on pairs, a ``Model`` out.

A method is a class with a ``Config`` and a ``_learn``. Its constructor validates and stores options; ``fit`` validates
the data, learns and returns the method; the result is in ``model_``. All randomness comes from ``seed``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from rmsh.codes import MAX_BITS, Codes
from rmsh.core.config import Config
from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES, BitArray, Features, FloatArray, Modality
from rmsh.model import Model

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.data.pairs import Pairs
    from rmsh.hash_function import HashFunction

HashFunctions: TypeAlias = "Mapping[Modality, HashFunction]"

_MIN_ITEMS = 3  # of each modality
_NOUNS: Mapping[Modality, str] = {"image": "an image", "text": "a text"}


class MethodConfig(Config):
    """Options of every method."""

    bits: int = Field(64, ge=1, le=MAX_BITS, description="code length")
    seed: int = Field(0, ge=0, description="random seed")


@dataclass(frozen=True)
class Run:
    """How a fit is carried out: where to write checkpoints, and the callback that receives each ``Progress``."""

    checkpoint: Path | None = None
    on_progress: OnProgress = ignore


class Method(ABC):
    """Learns hash functions for images and texts.

    A subclass sets the class attributes below and implements ``_learn``. ``version`` is stored with every result; raise
    it by one with every change that alters what the method learns from the same data, options and seed.

    Args:
        preset: a named set of options.
        options: fields of the method's ``Config``; they take precedence over the preset.

    Raises:
        ConfigError: a preset or an option is unknown, or a value is out of range.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    version: ClassVar[int] = 1
    supervised: ClassVar[bool] = True
    needs_both: ClassVar[bool] = True  # whether items with only an image or only a text are skipped
    Config: ClassVar[type[MethodConfig]] = MethodConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init__(self, *, preset: str | None = None, **options: Any) -> None:
        if preset is not None and preset not in self.presets:
            known = ", ".join(self.presets) or "none"
            raise ConfigError(f"{self.name} has no preset {preset!r}; known are: {known}.")
        defaults = {} if preset is None else self.presets[preset]
        self.config = self.Config.parse({**defaults, **options})
        self.preset = preset
        self.model_: Model | None = None

    def fit(
        self, pairs: Pairs, *, strict: bool = False, checkpoint: Path | None = None, on_progress: OnProgress = ignore
    ) -> Self:
        """Learn from the complete items of ``pairs`` and return the method.

        An item is complete if it has an image and a text (either of them if not ``needs_both``), and labels if the
        method is supervised.

        Args:
            pairs: items with feature columns.
            strict: fail on incomplete items instead of skipping and counting them.
            checkpoint: a file that stores the state of the run; if it exists, the run resumes from it.
            on_progress: called with a Progress after every epoch.

        Raises:
            DataError: a modality is missing or raw, too few items are complete, or ``strict`` and some are incomplete.
            FormatError: the checkpoint is damaged or belongs to another run.
            TrainingError: the loss is not finite.
        """
        for modality in MODALITIES:
            pairs.features(modality)  # raises if missing or raw
        skipped = {reason: int((~has).sum()) for reason, has in self._required(pairs).items() if not has.all()}
        complete = self.learns_from(pairs)
        if strict and skipped:
            listed = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
            raise DataError(f"{pairs.source}: {listed}; complete these items, or skip them by leaving out strict.")
        used = pairs if complete.all() else pairs.take(complete)
        facts: dict[str, Any] = {"skipped": skipped, "items": len(used)}
        functions = self._learn(used, Run(checkpoint, on_progress), facts)
        self.model_ = Model(functions, self.name, self.config.model_dump(), facts)
        return self

    @classmethod
    def learns_from(cls, pairs: Pairs) -> BitArray:
        """(n,) which items are complete, raw ones included; DataError if too few are."""
        complete: BitArray = np.logical_and.reduce(list(cls._required(pairs).values()))
        for modality, noun in _NOUNS.items():
            count = int((complete & pairs.has(modality)).sum())
            if count < _MIN_ITEMS:
                nouns = [*(_NOUNS.values() if cls.needs_both else (noun,)), *(("labels",) if cls.supervised else ())]
                raise DataError(
                    f"{pairs.source}: {count} of {len(pairs)} items have {' and '.join(nouns)}; {cls.name} needs at "
                    f"least {_MIN_ITEMS}."
                )
        return complete

    @classmethod
    def _required(cls, pairs: Pairs) -> dict[str, BitArray]:
        """For each reason to skip an item, (n,) which items pass."""
        required = {"without image": pairs.has_image, "without text": pairs.has_text}
        if not cls.needs_both:
            required = {"without image and text": pairs.has_image | pairs.has_text}
        return required | {"without labels": pairs.labelled} if cls.supervised else required

    @abstractmethod
    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:
        """Learn hash functions from complete items, and add to ``facts`` what users should know (JSON values)."""

    @property
    def model(self) -> Model:
        """The fitted model; InputError if the method is not fitted."""
        if self.model_ is None:
            raise InputError(f"This {self.name} is not fitted; call fit(pairs) first.")
        return self.model_

    def project(self, features: Features, modality: Modality) -> FloatArray:
        """The relaxed codes, float32 (n, bits), of features (n, d)."""
        return self.model.project(features, modality)

    def encode(self, features: Features, modality: Modality, *, ids: ArrayLike | None = None) -> Codes:
        """The binary codes of features (n, d)."""
        return self.model.encode(features, modality, ids=ids)

    def encode_database(self, pairs: Pairs, modality: Modality) -> Codes:
        """The codes of database items that are searched in one modality: those of :meth:`encode`.

        A method overrides it if its original also uses labels or the other modality to code the database, and an
        option selects that.
        """
        return self.encode(pairs.features(modality), modality, ids=pairs.ids)

    def save(self, folder: Path | str) -> None:
        """Write the model folder that ``rmsh.load`` reads."""
        self.model.save(folder)
