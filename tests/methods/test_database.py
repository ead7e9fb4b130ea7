"""Database codes from both modalities or from labels: the same from the method, a saved model and `rmsh encode`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh import pipeline
from rmsh.codes import Codes
from rmsh.core.errors import DataError
from rmsh.data.open import Opened
from rmsh.data.splits import random_split
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import create
from rmsh.methods.base import Method
from rmsh.methods.database import database_codes
from rmsh.model import load

PAIRS = generate_pairs(120, image_dim=20, text_dim=10)
OPTIONS: dict[str, dict[str, Any]] = {
    "cmfh": {"database_codes": "unified"},
    "seph": {"database_codes": "unified", "iterations": 20, "anchor_count": 20},
    "svhn": {"database_codes": "labels", "epochs": 2, "hidden": 16},
}
every_method = pytest.mark.parametrize("name", OPTIONS)


def _fitted(name: str, **options: Any) -> Method:
    return create(name, bits=12, **OPTIONS[name] | options).fit(PAIRS)


@every_method
def test_a_saved_model_codes_the_database_as_its_method_does(name: str, tmp_path: Path) -> None:
    method = _fitted(name)
    method.save(tmp_path)
    model = load(tmp_path)
    for modality in ("image", "text"):
        codes = method.encode_database(PAIRS, modality).packed
        np.testing.assert_array_equal(database_codes(model, PAIRS, modality).packed, codes)
        assert (codes != model.encode(PAIRS.features(modality), modality).packed).any()


@every_method
def test_encoding_uses_them_for_the_database_and_not_for_queries(name: str) -> None:
    model, split = _fitted(name).model, random_split(len(PAIRS), 30)
    found = pipeline.code(model, Opened(PAIRS, split, (), "generated"))
    for modality in ("image", "text"):
        queries, items = (
            Codes(getattr(found, modality)[rows], 12, PAIRS.ids[rows]) for rows in (split.query, split.database)
        )
        single = model.encode(PAIRS.features(modality), modality).packed
        np.testing.assert_array_equal(queries.packed, single[split.query])
        np.testing.assert_array_equal(items.packed, database_codes(model, PAIRS.take(split.database), modality).packed)


@every_method
def test_by_default_a_model_has_the_form_that_older_versions_read(name: str, tmp_path: Path) -> None:
    default = type(_fitted(name)).Config().model_dump()["database_codes"]
    for folder, method in (("default", _fitted(name, database_codes=default)), ("both", _fitted(name))):
        method.save(tmp_path / folder)
    formats = [json.loads((tmp_path / f / "config.json").read_text())["format"] for f in ("default", "both")]
    assert formats == [1, 2]


def test_the_posteriors_of_both_modalities_are_multiplied_and_divided_by_the_prior() -> None:
    method: Any = _fitted("seph")
    odds = [np.exp(method.project(PAIRS.features(m), m).astype(np.float64)) for m in ("image", "text")]
    share = (1 + method.prior_.astype(np.float64)) / 2
    posterior = odds[0] * odds[1] / (share / (1 - share))
    expected = Codes.from_values(np.log(posterior)).packed
    np.testing.assert_array_equal(method.encode_database(PAIRS, "text").packed, expected)


def test_an_item_without_a_text_is_refused_and_counted() -> None:
    method = _fitted("seph")
    with pytest.raises(DataError, match=r"2 database items have no text.*image and text.*'unified'"):
        method.encode_database(replace(PAIRS, has_text=np.arange(120) > 1), "image")
