"""A choice of delta: what it says to the user and to a file."""

from __future__ import annotations

import json

import pytest

from rmsh.coding.bounds import Bounds, DeltaChoice

PAPER = Bounds(10.03, "size", 1, ("independent", "entropy"))
TIGHT = Bounds(2.58, "literal", 3, ("joint", "gilbert-varshamov"))
NO_ROOM = Bounds(2.58, "literal", None, ("joint", "gilbert-varshamov"))
CROSSING = Bounds(2.58, "literal", 2, ("joint", "gilbert-varshamov"))


@pytest.mark.parametrize(
    ("used", "reason"),
    [
        (TIGHT, "the paper's bounds, 10.03 (|l_i|) and 1 (independent H(L)), leave no delta; this is the middle of "
                "2.58 (H_i estimated) and 3 (joint H(L), exact Gilbert-Varshamov sum)."),
        (CROSSING, "no form of the bounds leaves a delta, even 2.58 (H_i estimated) and 2 (joint H(L), exact "
                   "Gilbert-Varshamov sum) cross; this is the upper one."),
        (NO_ROOM, "no form of the bounds leaves a delta: the labels hold more than 16 bits; this is the smallest."),
    ],
)  # fmt: skip
def test_the_reason_names_the_forms(used: Bounds, reason: str) -> None:
    assert DeltaChoice(16, 1, used=used, paper=PAPER).reason == reason


def test_the_paper_without_an_upper_bound_is_said_to_have_none() -> None:
    paper = Bounds(10.03, "size", None, ("independent", "entropy"))
    assert "10.03 (|l_i|) and none (independent H(L))" in DeltaChoice(16, 3, used=TIGHT, paper=paper).reason


def test_a_bound_missed_by_rounding_only_is_feasible() -> None:
    assert Bounds(3 + 1e-12, "size", 3, ("independent", "entropy")).feasible
    assert not Bounds(3 + 1e-6, "size", 3, ("independent", "entropy")).feasible


def test_a_choice_survives_json() -> None:
    value = DeltaChoice(16, 3, used=TIGHT, paper=PAPER).to_json()
    assert json.loads(json.dumps(value)) == value
    assert (value["delta"], value["feasible"], value["paper"]["feasible"]) == (3, True, False)
    assert value["used"]["upper_form"] == ["joint", "gilbert-varshamov"]
