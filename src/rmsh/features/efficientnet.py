"""EfficientNet-Lite0: pictures to 1,280 features, in onnxruntime.

The graph is made from the weights when the first picture comes. That takes a third of a second and needs no torch, and
no exported file has to be kept, found again and trusted.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from rmsh.errors import require
from rmsh.features.base import refuse_others
from rmsh.features.efficientnet_graph import DIM, MIDDLE, SCALE, SIDE, build_graph
from rmsh.features.picture_encoder import PictureEncoder
from rmsh.features.pictures import Picture, read_picture
from rmsh.features.torch_file import read_tensors
from rmsh.features.weights import WEIGHTS, locate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.types import FloatArray

__all__ = ["EfficientNet"]

# What, beside the weights, decides the features; a change here is a change of the fingerprint.
_PREPROCESSING = f"squeeze {SIDE} hamming, draft 2, (x - {MIDDLE}) / {SCALE}, mean-pool"


class EfficientNet(PictureEncoder):
    """Features of the last convolution, averaged over the picture.

    A picture is squeezed to 224 x 224. The features of a picture do not depend on its company, to the last bit.
    """

    name: ClassVar[str] = "efficientnet-lite0"
    dim = DIM
    batch = 4

    def __init__(self) -> None:
        self._first = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Of the source weights and the preprocessing."""
        return sha256(f"{WEIGHTS[self.name].sha256}\n{_PREPROCESSING}".encode()).hexdigest()[:16]

    @classmethod
    def prepare(cls, items: Sequence[str]) -> Self:  # noqa: ARG003  # it looks at no data
        """Needs nothing of the training items."""
        return cls()

    def describe(self) -> dict[str, Any]:
        """Name and fingerprint."""
        return {"name": self.name, "fingerprint": self.fingerprint}

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Self:
        """The same encoder, if the weights at hand are the same."""
        encoder = cls()
        refuse_others(description, fingerprint=encoder.fingerprint)
        return encoder

    @cached_property
    def _session(self) -> Any:
        runtime = require("onnxruntime", "encoders")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # the pictures are what is spread over the processors
        graph = build_graph(read_tensors(locate(self.name)))
        return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def _read(self, picture: Picture) -> NDArray[np.uint8]:
        return np.asarray(read_picture(picture, (SIDE, SIDE)))

    def _embed(self, pictures: Sequence[NDArray[np.uint8]]) -> FloatArray:
        with self._first:  # one thread makes the network, the others wait for it
            session = self._session
        features: FloatArray = session.run(None, {"pixels": np.stack(pictures)})[0]
        return features
