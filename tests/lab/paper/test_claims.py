from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.paper.claims import Claim, check_claims
from lab.paper.published import COMPARED
from lab.paper.results import Experiment, RunResult
from rmsh.compare.run import Run

RISING = {method: 0.1 * number for number, method in enumerate(COMPARED)}  # RMSH is the last, and the best
BEST, BY_MAP, ORDER, DELTA, PARTS, WEIGHTS = range(6)
SWITCHES = {"RMSH-T": "triplet", "RMSH-C": "classification", "RMSH-P": "pseudo_codes"}


def _claims(**blocks: list[RunResult]) -> list[Claim]:
    names = {"table1": "table 1"}
    return check_claims(Experiment("coco66k", {names.get(name, name): runs for name, runs in blocks.items()}))


def _missing(**parameters: Any) -> RunResult:
    return RunResult(Run("coco66k", "rmsh", **parameters), {"status": "missing"})


def test_the_claims_are_confirmed_by_results_like_the_papers(everything: Experiment) -> None:
    claims = check_claims(everything)
    verdicts = [claim.verdict for claim in claims]
    assert verdicts == ["confirmed", "confirmed", "partly confirmed", "confirmed", "confirmed", "confirmed"]
    assert "8 of 8 comparisons" in claims[BEST].summary


def test_a_method_better_than_rmsh_is_named_with_its_scores(make_result: Callable[..., RunResult]) -> None:
    runs = [make_result(ndcg=(0.60, 0.50)), make_result(method="svhn", ndcg=(0.55, 0.58))]
    claim = _claims(table1=runs)[BEST]
    first_of_two, better = claim.details
    assert claim.verdict == "not confirmed"  # where RMSH is first, six methods are missing
    for value in ("T → I, 64 bits", "SVHN", "0.5800", "0.5000", "rank 2 of 2", "paired t-test over 4 queries"):
        assert value in better
    assert first_of_two.endswith("missing: CMFH, UCH, SePH, DCMH, TDH, SSAH.")


def test_the_best_of_eight_is_not_confirmed_before_all_eight_have_scores(make_result: Callable[..., RunResult]) -> None:
    eight = [make_result(method=m, bits=bits, ndcg=s) for bits in (16, 64) for m, s in RISING.items()]
    assert _claims(table1=eight)[BEST].verdict == "confirmed"
    claim = _claims(table1=[result for result in eight if result.run.path.name != "tdh-16-s0.json"])[BEST]
    assert claim.verdict == "confirmed so far"
    assert "2 of 2 comparisons" in claim.summary
    assert "2 more comparisons are missing" in claim.summary


def test_a_missing_length_keeps_a_claim_from_being_confirmed(make_result: Callable[..., RunResult]) -> None:
    eight = [make_result(method=m, ndcg=s) for m, s in RISING.items()]
    assert _claims(table1=[*eight, _missing(bits=16)])[BEST].verdict == "confirmed so far"


def test_missing_sweep_values_and_variants_keep_a_claim_from_being_confirmed(
    make_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    scores = {4.0: 0.5, 16.0: 0.6, 64.0: 0.5}
    deltas = [make_result(ndcg=0.6), *(make_sweep_run("delta", d, ndcg=s) for d, s in scores.items())]
    ablation = [make_result(ndcg=0.5, options={part: False}, tag=name) for name, part in SWITCHES.items()]
    full = [make_result(ndcg=0.6)]
    claims = _claims(table1=full, delta=deltas, ablation=ablation)
    assert [claims[number].verdict for number in (DELTA, PARTS)] == ["confirmed", "confirmed"]
    missing = _missing(options={"delta": 8.0}, tag="delta=8")
    claims = _claims(table1=full, delta=[*deltas, missing], ablation=ablation[:2])
    assert [claims[number].verdict for number in (DELTA, PARTS)] == ["confirmed so far", "confirmed so far"]
    assert "1 more deltas are missing" in claims[DELTA].summary


def test_rmsh_alone_tests_nothing(make_result: Callable[..., RunResult]) -> None:
    assert [claim.verdict for claim in _claims(table1=[make_result()])] == ["not tested"] * 6


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ({4.0: 0.5, 16.0: 0.6, 32.0: 0.58, 64.0: 0.5}, "confirmed"),
        ({4.0: 0.59, 16.0: 0.6, 32.0: 0.58, 64.0: 0.5}, "partly confirmed"),
        ({4.0: 0.7, 16.0: 0.6, 32.0: 0.58, 64.0: 0.65}, "not confirmed"),
    ],
)
def test_deltas_inside_the_bounds_are_compared_with_those_outside(
    scores: dict[float, float],
    verdict: str,
    make_result: Callable[..., RunResult],
    make_sweep_run: Callable[..., RunResult],
) -> None:
    runs = [make_sweep_run("delta", delta, ndcg=score) for delta, score in scores.items()]
    claim = _claims(delta=[*runs, make_result(ndcg=0.59)])[DELTA]
    assert claim.verdict == verdict
    assert claim.summary == "The bounds are 8.50 and 39; 3 deltas lie inside, 2 outside."


def test_without_bounds_or_with_all_deltas_inside_nothing_is_tested(
    make_result: Callable[..., RunResult], make_sweep_run: Callable[..., RunResult]
) -> None:
    inside = [make_sweep_run("delta", delta) for delta in (10.0, 12.0, 14.0)]
    assert _claims(delta=inside)[DELTA].verdict == "not tested"
    claim = _claims(delta=[*inside, make_result()])[DELTA]
    assert claim.verdict == "not tested"
    assert "4 deltas lie inside, 0 outside" in claim.summary


def test_a_part_whose_removal_costs_nothing_is_shown(make_result: Callable[..., RunResult]) -> None:
    variant = make_result(options={"triplet": False}, ndcg=(0.5, 0.61), tag="RMSH-T")
    claim = _claims(table1=[make_result(ndcg=0.6)], ablation=[variant])[PARTS]
    assert claim.verdict == "partly confirmed"
    assert claim.details[0].startswith("RMSH-T, I → T, 64 bits: +0.10")
    assert claim.details[1].startswith("RMSH-T, T → I, 64 bits: -0.01")


def test_a_weight_that_is_best_at_its_end_does_not_rise_and_fall(make_sweep_run: Callable[..., RunResult]) -> None:
    falling = {0.01: 0.6, 0.1: 0.5, 1.0: 0.4}
    runs = [make_sweep_run("lambda1", value, ndcg=score) for value, score in falling.items()]
    assert _claims(weights=runs)[WEIGHTS].verdict == "not confirmed"
    runs = [make_sweep_run("lambda3", value, ndcg=score) for value, score in falling.items()]
    claim = _claims(weights=runs)[WEIGHTS]  # of λ3 the paper says only that NDCG falls
    assert claim.verdict == "confirmed so far"  # of one weight of four
    assert claim.details == ("λ3: best at 0.01 (0.6000, mean of both directions), 0.6000 at 0.01 and 0.4000 at 1.",)


def test_the_order_of_methods_is_compared_by_rank(make_result: Callable[..., RunResult]) -> None:
    # The paper at 64 bits, I → T: UCH 0.2757 < CMFH 0.2899 < TDH 0.2946 < RMSH 0.3855, and four between the last two.
    claim = _claims(table1=[make_result(method=m, ndcg=-s) for m, s in RISING.items()])[ORDER]
    assert claim.verdict == "not confirmed"
    assert claim.details[0].startswith("I → T, 64 bits: -0.")
    assert claim.details[0].endswith("over 8 methods")


def test_the_order_of_some_methods_is_shown_without_a_verdict(make_result: Callable[..., RunResult]) -> None:
    three = [make_result(method=m, ndcg=s) for m, s in (("cmfh", 0.3), ("tdh", 0.2), ("rmsh", 0.1))]
    claim = _claims(table1=three)[ORDER]
    assert (claim.verdict, claim.details[0]) == ("not tested", "I → T, 64 bits: -1.00 over 3 methods")
