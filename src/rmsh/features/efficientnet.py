"""EfficientNet-Lite0: pictures to 1,280 features, in onnxruntime.

The graph is made from the weights when the first picture comes. That takes a third of a second and needs no torch, and
no exported file has to be kept, found again and trusted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rmsh.errors import require
from rmsh.features.efficientnet_graph import DIM, MIDDLE, SCALE, SIDE, build_graph
from rmsh.features.packaged import PackagedEncoder
from rmsh.features.picture_encoder import PictureEncoder
from rmsh.features.pictures import Picture, read_picture
from rmsh.features.torch_file import read_tensors
from rmsh.features.weights import locate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.types import FloatArray

__all__ = ["EfficientNet"]


class EfficientNet(PackagedEncoder, PictureEncoder):
    """Features of the last convolution, averaged over the picture.

    A picture is squeezed to 224 x 224. The features of a picture do not depend on its company, to the last bit.
    """

    name: ClassVar[str] = "efficientnet-lite0"
    weights = (name,)
    preprocessing = f"squeeze {SIDE} hamming, draft 2, (x - {MIDDLE}) / {SCALE}, mean-pool"
    dim = DIM
    batch = 4

    def __init__(self) -> None:
        self._first = threading.Lock()

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
