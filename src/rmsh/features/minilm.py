"""MiniLM: sentences to 384 features, by all-MiniLM-L6-v2 in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rmsh.core.errors import require
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.features.decoding import processors
from rmsh.features.weights import PackagedEncoder, locate

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, Modality

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
        # Checked here; onnxruntime opens it with the network file, which is in the same folder.
        locate("minilm-weights")
        runtime = require("onnxruntime", "encoders")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # threads that share a query of a few words take longer than one alone
        network = str(locate("minilm-network"))
        return runtime.InferenceSession(network, options, providers=["CPUExecutionProvider"])

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, 384)."""
        report = None if on_progress is ignore else counter(on_progress, "encode texts", len(items), "text")
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([str(item) for item in items])]
        # Texts of similar length share a batch, so that little is spent on padding.
        by_length = np.argsort([len(ids) for ids in tokens], kind="stable")
        batches = [by_length[first : first + _BATCH] for first in range(0, len(tokens), _BATCH)]
        features = np.empty((len(tokens), self.dim), dtype=np.float32)
        with ThreadPoolExecutor(processors()) as pool:  # which starts no thread before it is used
            run = pool.map if len(batches) > 1 else map
            found = run(lambda rows: self._embed([tokens[row] for row in rows]), batches)
            for done, (rows, embedded) in enumerate(zip(batches, found, strict=True), start=1):
                features[rows] = embedded
                if report is not None:
                    report(min(done * _BATCH, len(tokens)))
        return features

    def _embed(self, tokens: list[list[int]]) -> FloatArray:
        lengths = np.array([len(ids) for ids in tokens])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        ids = np.zeros_like(mask)
        ids[mask == 1] = np.concatenate(tokens)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, inputs)[0]
        pooled = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)
