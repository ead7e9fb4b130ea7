"""What a build will take, said before it begins: items, minutes, disk space."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.errors import RmshError

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs

__all__ = ["Estimate", "estimate"]

# Measured on two cores of a laptop's kind; what is done in one second, but for the last.
_PICTURES, _TEXTS = 80.0, 500.0
_TRAINING_ITEMS, _LEAST_TRAINING = 500.0, 30.0  # items that are learned from, in all epochs; and seconds at least
_CORES = 2

# Bytes: features of a picture and of a text as 32-bit numbers, a row of the library; and a model with its checkpoint.
_OF_PICTURE, _OF_TEXT, _OF_ITEM, _OF_MODEL = 4 * 1280, 4 * 384, 2_000, 60 << 20


@dataclass(frozen=True)
class Estimate:
    """What a build takes, roughly.

    Args:
        items: how many.
        pictures: of them with a picture.
        texts: of them with a text.
        seconds: of this machine.
        bytes: on disk, beside the pictures.
    """

    items: int
    pictures: int
    texts: int
    seconds: float
    bytes: int

    def __str__(self) -> str:
        minutes = max(1, round(self.seconds / 60))
        return (
            f"{self.items:,} items, {self.pictures:,} with a picture and {self.texts:,} with a text: about {minutes} "
            f"min and {max(1, self.bytes >> 20):,} MB of disk space the first time"
        )

    def check_space(self, folder: Path) -> None:
        """Refuse where the disk of a folder has not that much left.

        Raises:
            RmshError: it has less.
        """
        free = shutil.disk_usage(folder).free
        if free < self.bytes:
            raise RmshError(
                f"{folder} has {free >> 20:,} MB left and about {self.bytes >> 20:,} MB are needed; make space, or "
                "give a folder on another disk."
            )


def estimate(pairs: Pairs, *, own_pictures: int = 0) -> Estimate:
    """What a build of some items takes.

    Args:
        pairs: the items.
        own_pictures: bytes of the pictures that the library keeps itself.

    Example:
        >>> from rmsh.data.generated import generate_pairs
        >>> found = estimate(generate_pairs(1000))
        >>> found.pictures, found.bytes > 1000 * 4 * 1280
        (1000, True)
    """
    items, pictures, texts = len(pairs), int(pairs.has_image.sum()), int(pairs.has_text.sum())
    faster = max(1, os.cpu_count() or 1) / _CORES
    seconds = (pictures / _PICTURES + texts / _TEXTS + max(_LEAST_TRAINING, items / _TRAINING_ITEMS)) / faster
    size = pictures * _OF_PICTURE + texts * _OF_TEXT + items * _OF_ITEM + _OF_MODEL + own_pictures
    return Estimate(items, pictures, texts, seconds, size)
