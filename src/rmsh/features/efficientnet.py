"""EfficientNet-Lite0: images to 1,280 features, in onnxruntime.

The ONNX graph is built from the weights before the first image is encoded, with batch normalisation folded into the
convolutions. That takes a third of a second, needs no torch, and leaves no exported file to store and check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rmsh.core.errors import require
from rmsh.core.types import FloatArray
from rmsh.features.images import ImageEncoder, ImageLike, read_pixels
from rmsh.features.weights import PackagedEncoder, locate, open_session, read_tensors

SIDE = 224  # pixels
DIM = 1280
MIDDLE, SCALE = 127.0, 128.0  # a pixel x enters the network as (x - MIDDLE) / SCALE
_BLOCKS = 16
_HALVING = frozenset({1, 3, 5, 11})  # blocks that halve the side; the shapes of the weights determine the rest
_EPSILON = 1e-3  # of batch normalisation
_OPSET, _IR = 17, 8  # supported by every onnxruntime we allow


class _Graph:
    """Collects nodes and constants; a method that adds a node takes and returns names of values.

    The weights have the names of the package efficientnet_lite_pytorch.
    """

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        self._onnx = require("onnx", "encoders")
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._side, self._channels = SIDE, 3  # of the value that was convolved last

    def model(self) -> bytes:
        """The network from pixels, uint8 (n, 224, 224, 3), to pooled features, float32 (n, 1280)."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        self._network()
        graph = helper.make_graph(
            self._nodes,
            "efficientnet-lite0",
            [helper.make_tensor_value_info("pixels", types.UINT8, ["n", SIDE, SIDE, 3])],
            [helper.make_tensor_value_info("features", types.FLOAT, ["n", DIM])],
            self._constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
        serialized: bytes = model.SerializeToString()
        return serialized

    def _network(self) -> None:
        floats = self._node("Cast", "pixels", to=self._onnx.TensorProto.FLOAT)
        shifted = self._node("Sub", floats, self._constant("middle", np.float32(MIDDLE)))
        value = self._node("Transpose", shifted, perm=[0, 3, 1, 2])
        # Zero padding follows the subtraction, so only the scale may be folded into the weights; 1/128 is exact.
        stem = "_conv_stem.weight"
        self._weights = {**self._weights, stem: self._weights[stem] / np.float32(SCALE)}
        value = self._convolve(value, "_conv_stem", "_bn0", stride=2)
        for number in range(_BLOCKS):
            value = self._block(value, f"_blocks.{number}", stride=2 if number in _HALVING else 1)
        value = self._convolve(value, "_conv_head", "_bn1")
        self._node("Flatten", self._node("GlobalAveragePool", value), output="features")

    def _block(self, value: str, name: str, *, stride: int) -> str:
        """An inverted bottleneck: expand, filter each channel, project, add the input if the shapes agree."""
        inside, channels = value, self._channels
        if f"{name}._expand_conv.weight" in self._weights:
            inside = self._convolve(inside, f"{name}._expand_conv", f"{name}._bn0")
        inside = self._convolve(inside, f"{name}._depthwise_conv", f"{name}._bn1", stride=stride)
        inside = self._convolve(inside, f"{name}._project_conv", f"{name}._bn2", activate=False)
        return self._node("Add", inside, value) if stride == 1 and self._channels == channels else inside

    def _convolve(self, value: str, name: str, norm: str, *, stride: int = 1, activate: bool = True) -> str:
        kernel, bias = self._folded(name, norm)
        pads = self._padding(kernel.shape[2], stride)
        inputs = value, self._constant(f"{name}.kernel", kernel), self._constant(f"{name}.bias", bias)
        groups = self._channels // kernel.shape[1]  # as many as channels if each is filtered alone, otherwise 1
        self._channels = len(kernel)
        convolved = self._node("Conv", *inputs, strides=[stride, stride], pads=pads, group=groups)
        if not activate:
            return convolved
        bounds = self._constant(f"{name}.least", np.float32(0)), self._constant(f"{name}.most", np.float32(6))
        return self._node("Clip", convolved, *bounds)

    def _folded(self, name: str, norm: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Kernel and bias of a convolution and its batch normalisation."""
        gain, shift, mean, variance = (
            self._weights[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = gain / np.sqrt(variance + _EPSILON)
        return self._weights[f"{name}.weight"] * factor[:, None, None, None], shift - mean * factor

    def _padding(self, kernel: int, stride: int) -> list[int]:
        """TensorFlow's "same" padding: only the stride shrinks the side; an odd zero goes right and below."""
        side = -(-self._side // stride)
        missing = max((side - 1) * stride + kernel - self._side, 0)
        self._side = side
        return [missing // 2, missing // 2, missing - missing // 2, missing - missing // 2]

    def _node(self, operation: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"value {len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operation, inputs, [name], **attributes))
        return name

    def _constant(self, name: str, value: Any) -> str:
        array = np.ascontiguousarray(value, dtype=np.float32).reshape(np.shape(value))
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name


class EfficientNet(PackagedEncoder, ImageEncoder):
    """Features of the last convolution, averaged over the image, which is resized to 224 x 224.

    The features of an image do not depend on the other images of its batch, to the last bit.
    """

    name: ClassVar[str] = "efficientnet-lite0"
    weights = (name,)
    preprocessing = f"squeeze {SIDE} hamming, draft 2, (x - {MIDDLE}) / {SCALE}, mean-pool"
    dim = DIM
    batch = 4

    @cached_property
    def _session(self) -> Any:
        return open_session(_Graph(read_tensors(locate(self.name))).model())

    def _read(self, image: ImageLike) -> NDArray[np.uint8]:
        return read_pixels(image, (SIDE, SIDE))

    def _embed(self, images: Sequence[NDArray[np.uint8]]) -> FloatArray:
        with self._first:
            session = self._session
        features: FloatArray = session.run(None, {"pixels": np.stack(images)})[0]
        return features
