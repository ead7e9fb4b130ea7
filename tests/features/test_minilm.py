"""MiniLM with its real weights: known neighbours, the checks, the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.core.errors import FormatError
from rmsh.core.progress import Progress
from rmsh.features.extract import encode_items, restore
from rmsh.features.minilm import MiniLM

TEXTS = np.array(
    ["Two dogs play in the park.", "Puppies are running on the grass.", "A plate of pasta with tomato sauce"]
)


def test_texts_of_similar_meaning_are_closer_and_features_have_unit_length() -> None:
    features = MiniLM().encode(TEXTS.tolist())
    near, far = features[0] @ features[1], features[0] @ features[2]
    assert features.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
    assert near > 0.4 > 0.2 > far


def test_other_texts_of_a_batch_change_no_feature() -> None:
    together, alone = MiniLM().encode(TEXTS.tolist()), MiniLM().encode([str(TEXTS[1])])
    np.testing.assert_allclose(together[1], alone[0], atol=1e-5)


def test_queries_have_nearly_the_same_features_each_by_itself() -> None:
    encoder = MiniLM()
    exact, fast = encoder.encode(TEXTS.tolist()), encoder.encode_queries(TEXTS.tolist())
    assert (exact * fast).sum(axis=1).min() > 0.99
    assert not np.array_equal(exact, fast)
    np.testing.assert_array_equal(encoder.encode_queries([str(TEXTS[1])])[0], fast[1])
    np.testing.assert_allclose(np.linalg.norm(fast, axis=1), 1, rtol=1e-5)


def test_batches_in_several_threads_keep_the_order_of_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, reports = MiniLM().encode(TEXTS.tolist()), list[Progress]()
    monkeypatch.setattr("rmsh.features.minilm._BATCH", 1)
    found = MiniLM().encode(TEXTS.tolist(), on_progress=reports.append)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert [report.done for report in reports] == [1, 2, 3]


def test_a_very_long_text_is_cut_and_an_empty_one_has_a_feature() -> None:
    reports: list[Progress] = []
    features = MiniLM().encode(["word " * 5000, ""], on_progress=reports.append)
    assert np.isfinite(features).all()
    assert reports[-1].done == reports[-1].total == 2


def test_a_description_of_other_weights_is_refused() -> None:
    assert restore(MiniLM().describe()).fingerprint == MiniLM().fingerprint
    with pytest.raises(FormatError, match="minilm 0123"):
        restore({"name": "minilm", "fingerprint": "0123"})


def test_features_are_cached(tmp_path: Path) -> None:
    class Counting(MiniLM):
        calls = 0

        def encode(self, items: Any, **options: Any) -> Any:
            type(self).calls += 1
            return super().encode(items, **options)

    one, two = (encode_items(Counting(), TEXTS.tolist(), cache=tmp_path) for _ in range(2))
    np.testing.assert_array_equal(one.features, two.features)
    assert Counting.calls == 1
    encode_items(Counting(), TEXTS[:2].tolist(), cache=tmp_path)
    assert Counting.calls == 2
