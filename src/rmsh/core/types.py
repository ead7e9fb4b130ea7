"""Types shared by all packages: arrays, modalities and directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BitArray: TypeAlias = NDArray[np.bool_]  # (n, bits), True is bit 1
PackedArray: TypeAlias = NDArray[np.uint8]  # (n, ceil(bits / 8)), see codes.py
WordArray: TypeAlias = NDArray[np.uint64]  # (n, ceil(bits / 64)), see codes.py
LabelArray: TypeAlias = NDArray[np.uint8]  # (n, classes), 0 or 1
FloatArray: TypeAlias = NDArray[np.float32]  # features and relaxed codes
ScoreArray: TypeAlias = NDArray[np.float64]  # sums and averages
IntArray: TypeAlias = NDArray[np.int64]
IdArray: TypeAlias = NDArray[np.str_]  # (n,), unique
Features: TypeAlias = "FloatArray | csr_array[Any, tuple[int, int]]"  # dense, or a sparse bag of words

Modality: TypeAlias = Literal["image", "text"]
Direction: TypeAlias = Literal["i2t", "t2i", "i2i", "t2t"]  # query modality, "2", database modality

Store: TypeAlias = Literal["codes", "codes+vectors"]  # what a library keeps of each image and text
STORES: tuple[Store, ...] = get_args(Store)
MODALITIES: tuple[Modality, ...] = get_args(Modality)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
