"""Reads the tensors of a file that torch saved in its old form, without torch, and without running anything in it.

Such a file is five pickles followed by the numbers. A pickle is a small program; here it is not run but only scanned
for the names, shapes and strides it mentions. That suits the files of our own table, whose hash is checked before.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rmsh.errors import FormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_tensors"]

_COUNTER = "num_batches_tracked"  # the only tensors of integers


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a state dictionary by name.

    Raises:
        FormatError: the file has another form.
    """
    try:
        with path.open("rb") as file:
            return _read(file)
    except (KeyError, ValueError, IndexError) as error:
        raise FormatError(f"{path} is not a file of weights in torch's old form ({error}); install it anew.") from error


def _read(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    for _ in range(3):  # a magic number, the version, the sizes of C types
        list(pickletools.genops(file))
    described = {storage: (name, shape, strides) for storage, name, shape, strides in _described(file)}
    order = [str(argument) for op, argument, _ in pickletools.genops(file) if op.name == "BINUNICODE"]
    tensors = {}
    for storage in order:
        name, shape, strides = described[storage]
        dtype = np.dtype(np.int64 if name.endswith(_COUNTER) else np.float32)
        count = int.from_bytes(file.read(8), "little")
        numbers = np.frombuffer(file.read(count * dtype.itemsize), dtype)
        if len(numbers) != count or int(np.prod(shape)) != count:
            raise ValueError(f"{name} is cut off")
        tensors[name] = np.lib.stride_tricks.as_strided(numbers, shape, [step * dtype.itemsize for step in strides])
    return tensors


def _described(file: IO[bytes]) -> Iterator[tuple[str, str, list[int], list[int]]]:
    """Storage, name, shape and strides of each tensor.

    A tensor is mentioned as its name, the name of its storage, the mark BINPERSID, a zero, its shape, its strides, and
    the mark NEWFALSE; the words "storage" and "cpu" stand between.
    """
    words: list[str] = []
    numbers: list[int] = []
    for op, argument, _ in pickletools.genops(file):
        if op.name == "BINUNICODE" and argument not in ("storage", "cpu"):
            words.append(str(argument))
        elif op.name == "BINPERSID":
            numbers.clear()
        elif op.name.startswith("BININT"):
            numbers.append(int(argument or 0))
        elif op.name == "NEWFALSE":
            dimensions = len(numbers) // 2
            yield words[-1], words[-2], numbers[1 : 1 + dimensions], numbers[1 + dimensions :]
