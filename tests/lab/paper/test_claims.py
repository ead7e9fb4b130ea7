from __future__ import annotations

import pytest

from lab.paper.claims.catalogue import check_claims
from lab.paper.claims.claim import Claim
from lab.paper.names import COMPARED
from lab.paper.outcomes import Outcome, with_awaited
from rmsh.compare.grid import Run

RISING = {method: 0.1 * number for number, method in enumerate(COMPARED)}  # RMSH is the last, and the best
BEST, BY_MAP, ORDER, DELTA, PARTS, WEIGHTS = range(6)


def _claims(outcomes: list[Outcome]) -> list[Claim]:
    return check_claims(outcomes, "coco66k")


def test_all_claims_hold_where_the_results_are_the_papers(all_outcomes: list[Outcome]) -> None:
    claims = _claims(all_outcomes)
    verdicts = [claim.verdict for claim in claims]
    assert verdicts == ["holds", "holds", "holds in part", "holds", "holds", "holds"]
    assert claims[BEST].summary.startswith("RMSH is first in 8 of 8 comparisons")


def test_a_method_before_rmsh_is_named_with_its_numbers(make_outcome) -> None:
    outcomes = [make_outcome(ndcg=(0.60, 0.50)), make_outcome(method="svhn", ndcg=(0.55, 0.58))]
    claim = _claims(outcomes)[BEST]
    first_of_two, before = claim.details
    assert claim.verdict == "does not hold"  # where RMSH is first, six methods are missing
    assert before.startswith("T → I, 64 bits: SVHN 0.5800 is before RMSH 0.5000, which is number 2 of 2")
    assert "paired t-test over 4 queries" in before
    assert first_of_two == (
        "I → T, 64 bits: RMSH is first of the 2 that have scores; not there: CMFH, UCH, SePH, DCMH, TDH, SSAH."
    )


def test_the_best_of_eight_is_not_claimed_before_all_eight_have_scores(make_outcome) -> None:
    eight = [make_outcome(method=m, bits=bits, ndcg=s) for bits in (16, 64) for m, s in RISING.items()]
    assert _claims(eight)[BEST].verdict == "holds"
    seven = [outcome for outcome in eight if outcome.run.path.name != "tdh-16-s0.json"]
    claim = _claims(seven)[BEST]
    assert claim.verdict == "holds so far"
    assert claim.summary == (
        "RMSH is first in 2 of 2 comparisons over code lengths and directions, in 2 of them significantly; 2 more "
        "comparisons are open."
    )


def test_a_length_that_is_to_be_run_keeps_a_claim_from_holding(make_outcome) -> None:
    eight = [make_outcome(method=m, ndcg=s) for m, s in RISING.items()]
    assert _claims(with_awaited(eight, [Run("coco66k", "rmsh", bits=16)]))[BEST].verdict == "holds so far"


def test_sweeps_and_parts_that_are_to_be_run_keep_a_claim_from_holding(make_outcome) -> None:
    scores = {4.0: 0.5, 16.0: 0.6, 64.0: 0.5}
    outcomes = [make_outcome(ndcg=0.6), *(make_outcome(options={"delta": d}, ndcg=s) for d, s in scores.items())]
    outcomes += [
        make_outcome(options={part: False}, ndcg=0.5) for part in ("triplet", "classification", "pseudo_codes")
    ]
    assert [_claims(outcomes)[number].verdict for number in (DELTA, PARTS)] == ["holds", "holds"]
    wanted = [Run("coco66k", "rmsh", options={"delta": 8.0}), outcomes.pop().run]
    later = _claims(with_awaited(outcomes, wanted))
    assert [later[number].verdict for number in (DELTA, PARTS)] == ["holds so far", "holds so far"]
    assert later[DELTA].summary.endswith("2 outside; 1 more deltas are open.")


def test_rmsh_alone_is_no_comparison(make_outcome) -> None:
    assert [claim.verdict for claim in _claims([make_outcome()])] == ["open"] * 6


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ({4.0: 0.5, 16.0: 0.6, 32.0: 0.58, 64.0: 0.5}, "holds"),
        ({4.0: 0.59, 16.0: 0.6, 32.0: 0.58, 64.0: 0.4}, "holds in part"),  # on average only
        ({4.0: 0.7, 16.0: 0.6, 32.0: 0.58, 64.0: 0.7}, "does not hold"),
    ],
)
def test_deltas_inside_the_bounds_are_set_against_those_outside(make_outcome, scores, verdict: str) -> None:
    outcomes = [make_outcome(options={"delta": delta}, ndcg=score) for delta, score in scores.items()]
    claim = _claims([*outcomes, make_outcome(ndcg=0.59)])[DELTA]
    assert claim.verdict == verdict
    assert claim.summary == "The bounds are 8.50 and 39; 3 deltas lie inside, 2 outside."


def test_without_bounds_or_with_all_deltas_inside_nothing_is_claimed(make_outcome) -> None:
    inside = [make_outcome(options={"delta": delta}) for delta in (10.0, 12.0, 14.0)]
    assert _claims(inside)[DELTA].verdict == "open"
    assert "4 deltas lie inside, 0 outside" in _claims([*inside, make_outcome()])[DELTA].summary


def test_the_bounds_are_those_of_the_pairs_that_the_sweep_learned_from(make_outcome) -> None:
    sweep = [make_outcome(options={"delta": delta}, train=50) for delta in (4.0, 16.0, 32.0)]
    whole, own = make_outcome(bounds=(2.0, 50)), make_outcome(train=50, bounds=(8.5, 39))
    assert _claims([*sweep, whole])[DELTA].verdict == "open"
    assert "The bounds are 8.50 and 39" in _claims([whole, *sweep, own])[DELTA].summary


def test_a_part_that_costs_nothing_is_shown(make_outcome) -> None:
    outcomes = [make_outcome(ndcg=0.6), make_outcome(options={"triplet": False}, ndcg=(0.5, 0.61))]
    claim = _claims(outcomes)[PARTS]
    assert claim.verdict == "holds in part"
    assert claim.details[0].startswith("RMSH-T, I → T, 64 bits: +0.10")
    assert claim.details[1].startswith("RMSH-T, T → I, 64 bits: -0.01")


def test_a_weight_that_is_best_at_its_end_does_not_rise_and_fall(make_outcome) -> None:
    falling = {0.01: 0.6, 0.1: 0.5, 1.0: 0.4}
    outcomes = [make_outcome(options={"lambda1": v}, ndcg=s) for v, s in falling.items()]
    assert _claims(outcomes)[WEIGHTS].verdict == "does not hold"
    outcomes = [make_outcome(options={"lambda3": v}, ndcg=s) for v, s in falling.items()]
    claim = _claims(outcomes)[WEIGHTS]  # of λ3 the paper says only that it falls
    assert claim.verdict == "holds so far"  # of one weight of four
    assert claim.details == ("λ3: best at 0.01 (0.6000, mean of both directions), 0.6000 at 0.01 and 0.4000 at 1.",)


def test_the_order_of_methods_is_compared_by_rank(make_outcome) -> None:
    # The paper at 64 bits, I → T: UCH 0.2757 < CMFH 0.2899 < TDH 0.2946 < RMSH 0.3855, and four between the last two.
    turned = [make_outcome(method=m, ndcg=-s) for m, s in RISING.items()]
    claim = _claims(turned)[ORDER]
    assert claim.verdict == "does not hold"
    assert claim.details[0].startswith("I → T, 64 bits: -0.")
    assert claim.details[0].endswith("over 8 methods")


def test_the_order_of_some_methods_is_told_and_not_judged(make_outcome) -> None:
    three = [make_outcome(method=m, ndcg=s) for m, s in (("cmfh", 0.3), ("tdh", 0.2), ("rmsh", 0.1))]
    claim = _claims(three)[ORDER]
    assert (claim.verdict, claim.details[0]) == ("open", "I → T, 64 bits: -1.00 over 3 methods")
