"""What every method must do, whoever wrote it: one suite over the registry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import lab.methods  # noqa: F401  # a method of the lab follows the same contract
from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import METHODS, create, method_class
from rmsh.methods.base import Method
from rmsh.metrics.evaluate import evaluate
from rmsh.model import load

# Options that make a method quick; methods without steps are quick by themselves.
_FEW_STEPS = {"epochs": 2, "batch": 32, "hidden": 16}
_WITHOUT_STEPS = ("cca-itq", "cmfh", "rotation", "scm", "seph")
QUICK: dict[str, dict[str, Any]] = {name: _FEW_STEPS for name in METHODS.names() if name not in _WITHOUT_STEPS}
DETERMINISTIC = ("scm",)  # methods that draw nothing at random

pytestmark = pytest.mark.parametrize("name", METHODS.names())


def _method(name: str, **options: Any) -> Method:
    return create(name, **{"bits": 12, **QUICK.get(name, {}), **options})


def _pairs(n: int = 90, **options: Any) -> Pairs:
    return generate_pairs(n, image_dim=20, text_dim=10, **options)


def test_fit_returns_the_method_and_codes_have_the_asked_length(name: str) -> None:
    pairs = _pairs()
    method = _method(name)
    assert method.fit(pairs) is method
    for modality in ("image", "text"):
        values = method.project(pairs.features(modality), modality)
        codes = method.encode(pairs.features(modality), modality, ids=pairs.ids)
        assert (values.shape, values.dtype, codes.bits) == ((90, 12), np.float32, 12)
        np.testing.assert_array_equal(codes.ids, pairs.ids)


def test_a_saved_model_gives_the_same_codes(name: str, tmp_path: Path) -> None:
    pairs = _pairs()
    method = _method(name).fit(pairs)
    method.save(tmp_path)
    for modality in ("image", "text"):
        ours, theirs = (m.encode(pairs.features(modality), modality) for m in (method, load(tmp_path)))
        np.testing.assert_array_equal(ours.packed, theirs.packed)


def test_the_same_seed_gives_the_same_values_and_another_seed_gives_others_of_the_same_shape(name: str) -> None:
    pairs = _pairs()
    one, two, other = (
        _method(name, seed=seed).fit(pairs).project(pairs.features("image"), "image") for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(one, two)
    assert other.shape == one.shape
    if name not in DETERMINISTIC:
        assert not np.array_equal(one, other)


def test_a_method_has_a_version_that_is_a_positive_integer(name: str) -> None:
    assert type(method_class(name).version) is int
    assert method_class(name).version >= 1


def test_encode_learns_nothing(name: str) -> None:
    pairs = _pairs()
    method = _method(name).fit(pairs)
    first = method.project(pairs.features("text"), "text")
    method.encode(pairs.features("text")[:3], "text")
    np.testing.assert_array_equal(method.project(pairs.features("text"), "text"), first)


def test_a_finished_checkpoint_gives_the_same_model_again(name: str, tmp_path: Path) -> None:
    pairs, file = _pairs(), tmp_path / "checkpoint.safetensors"
    one, two = (_method(name).fit(pairs, checkpoint=file).model.fingerprint for _ in range(2))
    assert one == two


def test_sparse_texts_are_learned_from(name: str) -> None:
    pairs = _pairs()
    texts = sparse.csr_array(np.maximum(np.asarray(pairs.texts), 0))
    method = _method(name).fit(replace(pairs, texts=texts))
    assert method.encode(texts, "text").packed.shape == (90, 2)


def test_incomplete_items_are_skipped_and_counted(name: str) -> None:
    pairs = _pairs()
    has_text = np.ones(90, dtype=np.bool_)
    has_text[:5] = False
    method = _method(name).fit(replace(pairs, has_text=has_text))
    assert method.model.facts["skipped"] == ({"without text": 5} if method.needs_both else {})
    assert method.model.facts["items"] == (85 if method.needs_both else 90)


def test_what_an_absent_text_would_have_been_makes_no_difference(name: str) -> None:
    pairs = _pairs()
    has_text = np.arange(90) % 3 > 0
    other = np.where(has_text[:, None], np.asarray(pairs.texts), np.float32(7))
    one, two = (_method(name).fit(replace(pairs, texts=t, has_text=has_text)) for t in (pairs.texts, other))
    for modality in ("image", "text"):
        features = pairs.features(modality)
        np.testing.assert_array_equal(one.project(features, modality), two.project(features, modality))


def test_items_without_labels_are_skipped_by_supervised_methods(name: str) -> None:
    pairs = _pairs()
    labels = np.asarray(pairs.labels).copy()
    labels[:7] = 0
    method = _method(name)
    skipped = method.fit(replace(pairs, labels=labels)).model.facts["skipped"]
    assert skipped == ({"without labels": 7} if method.supervised else {})


def test_strict_refuses_incomplete_items(name: str) -> None:
    all_but_one = np.arange(90) > 0
    method = _method(name)
    has_text = None if method.needs_both else all_but_one
    reason = "1 without image" if method.needs_both else "1 without image and text"
    with pytest.raises(DataError, match=f": {reason};"):
        method.fit(replace(_pairs(), has_image=all_but_one, has_text=has_text), strict=True)


def test_a_missing_modality_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="text"):
        _method(name).fit(replace(_pairs(), texts=None, has_text=None))


def test_raw_texts_are_refused(name: str) -> None:
    raw = np.array([f"text {i}" for i in range(90)])
    with pytest.raises(DataError, match="texts are raw"):
        _method(name).fit(replace(_pairs(), texts=raw))


def test_too_few_items_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="at least 3"):
        _method(name).fit(_pairs().take(np.arange(2)))
    with pytest.raises(DataError, match=f"2 of 90 items have .*a text.*{name}"):
        _method(name).fit(replace(_pairs(), has_text=np.arange(90) < 2))


@pytest.mark.parametrize("n", [3, 4, 5, 33])
def test_very_few_items_are_learned_from(name: str, n: int) -> None:
    pairs = _pairs().take(np.arange(n))
    assert np.isfinite(_method(name).fit(pairs).project(pairs.features("text"), "text")).all()


def test_one_class_only_and_more_bits_than_features_are_learned(name: str) -> None:
    pairs = _pairs()
    labels = np.ones((90, 1), dtype=np.uint8)
    method = _method(name, bits=70).fit(replace(pairs, labels=labels, class_names=()))
    assert np.isfinite(method.project(pairs.features("image"), "image")).all()


def _single_labels(n: int = 160) -> Pairs:
    """Ten classes, one label per item, 128 image and 10 text dimensions, like the articles of Wikipedia."""
    rng = np.random.default_rng(0)
    classes = np.arange(n) % 10
    centres = rng.normal(size=(10, 128)), rng.normal(size=(10, 10))
    images, texts = (
        (centre[classes] + 0.3 * rng.normal(size=(n, centre.shape[1]))).astype(np.float32) for centre in centres
    )
    return Pairs(ids=np.arange(n).astype(str), images=images, texts=texts, labels=np.eye(10, dtype=np.uint8)[classes])


def test_data_with_one_label_per_item_is_learned_far_above_chance(name: str) -> None:
    pairs = _single_labels()
    options = {"epochs": 15, "batch": 16, "hidden": 64, "learning_rate": 0.01} if name in QUICK else {}
    method = create(name, bits=16, **options).fit(pairs.take(np.arange(120)))
    rest = pairs.take(np.arange(120, 160))
    codes = method.encode(rest.features("image"), "image"), method.encode(rest.features("text"), "text")
    scores = evaluate(*codes, rest.labels, rest.labels)
    assert scores.map.value > 2 * scores.map.chance


def test_nothing_is_coded_before_fit(name: str) -> None:
    with pytest.raises(InputError, match=rf"{name} .*fit\(pairs\)"):
        _method(name).project(np.zeros((1, 20), np.float32), "image")


def test_an_unknown_option_names_the_nearest(name: str) -> None:
    with pytest.raises(ConfigError, match=r"'bitz'.*'bits'"):
        create(name, bitz=3)


def test_an_option_out_of_range_says_what_is_allowed(name: str) -> None:
    with pytest.raises(ConfigError, match=r"'bits' got 0.*1"):
        create(name, bits=0)


def test_an_unknown_preset_names_the_known(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} .*'best'"):
        create(name, preset="best")
