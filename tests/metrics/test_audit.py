"""The audit: bits without information and equal codes are found."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.metrics import LabelledCodes, audit_bits, audit_codes
from rmsh.metrics.audit import NEARLY_CONSTANT


def built(columns: list[np.ndarray]) -> Codes:
    return Codes.from_values(np.where(np.stack(columns, axis=1), 1, -1))


def test_each_defect_is_found_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    fair, other = rng.random(1000) < 0.5, rng.random(1000) < 0.5
    rare = np.arange(1000) < 10
    found = audit_bits(built([fair, np.ones(1000), other, ~fair, np.zeros(1000), rare, other]))
    assert found.dead == (1, 4)
    assert found.nearly_constant == (5,)
    assert found.duplicates == ((0, 3), (2, 6))
    assert found.ones[[0, 1, 5]] == pytest.approx([fair.mean(), 1, 0.01])


def test_a_bit_on_the_threshold_is_not_nearly_constant() -> None:
    share = np.arange(100) < 100 * NEARLY_CONSTANT
    assert audit_bits(built([share])).nearly_constant == ()


def test_the_mean_correlation_is_that_of_numpy() -> None:
    values = np.random.default_rng(1).random((500, 6)) < [0.5, 0.3, 0.5, 0.7, 0.5, 0.2]
    wanted = np.abs(np.corrcoef(values.T)[np.triu_indices(6, 1)]).mean()
    assert audit_bits(built(list(values.T))).mean_correlation == pytest.approx(wanted)


def test_rows_are_counted_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Codes.from_values(np.random.default_rng(2).standard_normal((50, 9)))
    whole = audit_bits(codes).to_json()
    monkeypatch.setattr("rmsh.metrics.audit._ROWS", 7)
    assert audit_bits(codes).to_json() == whole


def test_without_two_live_bits_there_is_no_correlation() -> None:
    assert audit_bits(Codes.from_values([[1, 1], [1, -1]])).mean_correlation is None


def test_equal_codes_are_counted() -> None:
    found = audit_bits(Codes.from_values([[1, -1], [1, -1], [-1, -1], [1, -1]]))
    assert (found.items, found.bits, found.distinct, found.largest_bucket) == (4, 2, 2, 3)


def test_an_audit_has_both_sides_and_the_scores_as_plain_json() -> None:
    query = LabelledCodes(Codes.from_values([[1, 1]]), [[1]])
    database = LabelledCodes(Codes.from_values([[1, 1], [1, -1]]), [[1], [0]])
    plain = json.loads(json.dumps(audit_codes(query, database, k=1).to_json(), allow_nan=False))
    assert (plain["query"]["items"], plain["database"]["dead"]) == (1, [0])
    assert plain["scores"]["ndcg"] == {"value": 1.0, "pessimistic": 1.0, "optimistic": 1.0, "chance": 0.5}
