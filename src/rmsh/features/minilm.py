"""MiniLM: sentences to 384 features, by all-MiniLM-L6-v2 in onnxruntime.

Queries are encoded by a copy of the network whose weights have 8 bits, which takes half the time: the cosine between
the two vectors of a text is 0.999, and the loss of recall is measured by `make lab ARGS="text-encoder"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rmsh.core.errors import require
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.features.decoding import processors
from rmsh.features.weights import PackagedEncoder, locate, open_session

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, Modality

_MAX_TOKENS = 128
_BATCH = 64  # texts
_BLOCK = 128  # weights with a common scale


class MiniLM(PackagedEncoder):
    """Sentence embeddings of unit length: the mean over at most 128 tokens, normalised."""

    name: ClassVar[str] = "minilm"
    weights = ("minilm-network", "minilm-weights", "minilm-tokenizer")
    preprocessing = f"mean-pool, l2, {_MAX_TOKENS} tokens"
    modality: ClassVar[Modality] = "text"
    dim = 384

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = require("tokenizers", "encoders").Tokenizer.from_file(str(locate("minilm-tokenizer")))
        tokenizer.enable_truncation(_MAX_TOKENS)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        return open_session(str(_network()))

    @cached_property
    def _fast_session(self) -> Any:
        return open_session(quantised(_network()), without=["SkipLayerNormFusion"])  # which takes longer

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, 384)."""
        report = counter(on_progress, "encode texts", len(items), "text")
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([str(item) for item in items])]
        # Texts of similar length share a batch, so that little is spent on padding.
        by_length = np.argsort([len(ids) for ids in tokens], kind="stable")
        batches = [by_length[first : first + _BATCH] for first in range(0, len(tokens), _BATCH)]
        features = np.empty((len(tokens), self.dim), dtype=np.float32)
        with ThreadPoolExecutor(processors()) as pool:  # starts no thread before it is used
            run = pool.map if len(batches) > 1 else map
            found = run(lambda rows: _embed(self._session, [tokens[row] for row in rows]), batches)
            for done, (rows, embedded) in enumerate(zip(batches, found, strict=True), start=1):
                features[rows] = embedded
                report(min(done * _BATCH, len(tokens)))
        return features

    def encode_queries(self, items: Sequence[str]) -> FloatArray:
        """Nearly the same features in half the time for a few texts, one by one; float32 (n, 384)."""
        with self._first:
            session = self._fast_session
        return np.concatenate([_embed(session, [self._tokenizer.encode(str(item)).ids]) for item in items])


def _embed(session: Any, tokens: list[list[int]]) -> FloatArray:
    lengths = np.array([len(ids) for ids in tokens])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.zeros_like(mask)
    ids[mask == 1] = np.concatenate(tokens)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = session.run(None, inputs)[0]
    pooled = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)


def _network() -> Path:
    locate("minilm-weights")  # checked here; onnxruntime opens it with the network file, which is in the same folder
    return locate("minilm-network")


def quantised(path: Path) -> bytes:
    """A network whose matrices of weights have 8 bits, with a scale for each block of a column, as an ONNX file.

    It is made in half a second, so no file has to be stored and checked.
    """
    onnx = require("onnx", "encoders")
    network = onnx.load(str(path), load_external_data=False)  # it refuses weights with hard links, as uv installs them
    weights_file = np.memmap(locate("minilm-weights"), np.uint8, "r")
    for each in network.graph.initializer:
        place = {entry.key: entry.value for entry in each.external_data}
        if place:
            start = int(place.get("offset", 0))
            each.raw_data = weights_file[start : start + int(place["length"])].tobytes()
            each.data_location = onnx.TensorProto.DEFAULT
            del each.external_data[:]
    matrices = {each.name: onnx.numpy_helper.to_array(each) for each in network.graph.initializer}
    nodes, constants = [], {each.name: each for each in network.graph.initializer}
    for node in network.graph.node:
        weights = matrices.get(node.input[1]) if node.op_type == "MatMul" else None
        if weights is not None:
            (rows, columns), (values, name) = weights.shape, node.input
            blocks = weights.T.reshape(columns, rows // _BLOCK, _BLOCK)
            scales = np.maximum(np.abs(blocks).max(axis=2, keepdims=True) / 127, np.float32(1e-12))
            whole = (np.rint(blocks / scales) + 128).astype(np.uint8)
            del constants[name]
            constants |= {
                f"{name} {part}": onnx.numpy_helper.from_array(array, f"{name} {part}")
                for part, array in (("8 bit", whole), ("scales", scales.ravel()))
            }
            node = onnx.helper.make_node(
                "MatMulNBits",
                [values, f"{name} 8 bit", f"{name} scales"],
                node.output,
                domain="com.microsoft",
                K=rows,
                N=columns,
                bits=8,
                block_size=_BLOCK,
                accuracy_level=4,  # products of 8-bit numbers
            )
        nodes.append(node)
    del network.graph.node[:], network.graph.initializer[:]
    network.graph.node.extend(nodes)
    network.graph.initializer.extend(constants.values())
    serialized: bytes = network.SerializeToString()
    return serialized
