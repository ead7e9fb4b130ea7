"""MiniLM: sentences to 384 features, by all-MiniLM-L6-v2 in onnxruntime."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rmsh.core.errors import require
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.features.weights import PackagedEncoder, locate

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, IntArray, Modality

_MAX_TOKENS = 128
_BATCH = 64  # texts


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
        locate(
            "minilm-weights"
        )  # checked here; onnxruntime opens it with the network file, which is in the same folder
        return require("onnxruntime", "encoders").InferenceSession(
            str(locate("minilm-network")), providers=["CPUExecutionProvider"]
        )

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, 384)."""
        start = time.perf_counter()
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([str(item) for item in items])]
        # Texts of similar length share a batch, so that little is spent on padding.
        by_length = np.argsort([len(ids) for ids in tokens], kind="stable")
        features = np.empty((len(tokens), self.dim), dtype=np.float32)
        for done in range(0, len(tokens), _BATCH):
            rows = by_length[done : done + _BATCH]
            features[rows] = self._embed([tokens[row] for row in rows])
            seconds = time.perf_counter() - start
            on_progress(Progress("encode texts", done + len(rows), len(tokens), "text", seconds))
        return features

    def _embed(self, tokens: list[list[int]]) -> FloatArray:
        ids, mask = _padded(tokens)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, inputs)[0]
        pooled = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)


def _padded(tokens: list[list[int]]) -> tuple[IntArray, IntArray]:
    """Token numbers and their mask, int64 (n, longest)."""
    ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, numbers in enumerate(tokens):
        ids[row, : len(numbers)] = numbers
        mask[row, : len(numbers)] = 1
    return ids, mask
