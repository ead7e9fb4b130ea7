"""The bounds of delta: hand-worked cases, brute-force codes, laws, and the policy step by step."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.coding import bounds as bounds_module
from rmsh.coding.bounds import Bounds, DeltaChoice, check_delta, choose_delta, lower_bound, upper_bound
from rmsh.coding.entropy import LabelStatistics, binary_entropy
from rmsh.core.errors import CodesError, ConfigError, InputError

lengths = st.integers(1, 256)
entropies = st.integers(0, 300_000).map(lambda thousandths: thousandths / 1000)


def greedy_code(bits: int, distance: int) -> int:
    """How many codes a greedy search finds that are all at least ``distance`` apart."""
    chosen: list[int] = []
    for code in range(2**bits):
        if all((code ^ other).bit_count() >= distance for other in chosen):
            chosen.append(code)
    return len(chosen)


# H(L), then delta_max by the entropy of the ball and by the exact sum, at 16, 32, 64 and 128 bits.
TABLE = [
    (12.97, [1, 5, 16, 41], [1, 6, 18, 43]),
    (8.69, [2, 7, 19, 45], [3, 8, 21, 48]),
    (6.25, [3, 8, 21, 48], [4, 10, 23, 51]),
    (5.07, [3, 9, 22, 50], [4, 11, 24, 53]),
    (15.79, [1, 4, 14, 38], [1, 5, 16, 41]),
    (10.18, [2, 6, 18, 43], [2, 7, 20, 46]),
]


@pytest.mark.parametrize(("entropy", "by_entropy", "exact"), TABLE)
def test_upper_bounds_of_known_label_sets(entropy: float, by_entropy: list[int], exact: list[int]) -> None:
    code_lengths = (16, 32, 64, 128)
    assert [upper_bound(bits, entropy) for bits in code_lengths] == by_entropy
    assert [upper_bound(bits, entropy, form="gilbert-varshamov") for bits in code_lengths] == exact


def test_the_exact_sum_by_hand() -> None:
    # 1 + 7 + 21 = 29 <= 2^5 < 1 + 7 + 21 + 35: three of the terms fit for 7 bits and 4 values of 2 bits.
    assert upper_bound(7, 2, form="gilbert-varshamov") == 3


@pytest.mark.parametrize("form", ["entropy", "gilbert-varshamov"])
def test_labels_that_fill_the_code_leave_distance_one_and_more_leave_none(form: bounds_module.BallForm) -> None:
    assert upper_bound(16, 16.0, form=form) == 1
    assert upper_bound(16, 16.001, form=form) is None


def test_a_single_label_set_may_use_the_whole_code() -> None:
    assert upper_bound(16, 0) == 9
    assert upper_bound(16, 0, form="gilbert-varshamov") == 16


@given(lengths, entropies)
def test_the_theorem_is_solved_for_the_largest_delta(bits: int, entropy: float) -> None:
    holds = [
        delta
        for delta in range(1, 1 + bits // 2 + 1)
        if float(binary_entropy((delta - 1) / bits)) <= 1 - entropy / bits
    ]
    assert upper_bound(bits, entropy) == max(holds, default=None)


@given(lengths, entropies)
def test_the_exact_sum_is_never_below_the_theorem(bits: int, entropy: float) -> None:
    by_entropy, exact = upper_bound(bits, entropy), upper_bound(bits, entropy, form="gilbert-varshamov")
    assert (by_entropy is None) == (exact is None)
    assert by_entropy is None or 1 <= by_entropy <= min(exact, 1 + bits / 2)
    assert exact is None or exact <= bits


@pytest.mark.parametrize("words", [1, 2, 3, 4, 7, 8, 16])
@pytest.mark.parametrize("bits", range(1, 7))
def test_a_greedy_code_has_room_at_the_exact_bound(bits: int, words: int) -> None:
    delta = upper_bound(bits, math.log2(words), form="gilbert-varshamov")
    if delta is None:
        assert words > 2**bits
    else:
        assert greedy_code(bits, delta) >= words


@pytest.mark.parametrize(("bits", "distance"), [(bits, d) for bits in range(1, 7) for d in range(1, bits + 1)])
def test_a_greedy_code_reaches_the_gilbert_varshamov_number(bits: int, distance: int) -> None:
    ball = sum(math.comb(bits, i) for i in range(distance))
    assert greedy_code(bits, distance) * ball >= 2**bits


@pytest.mark.parametrize("entropy", [-1.0, math.nan, math.inf])
def test_an_invalid_entropy_is_refused(entropy: float) -> None:
    with pytest.raises(InputError, match=str(entropy)):
        upper_bound(16, entropy)


def test_a_code_of_no_bits_is_refused() -> None:
    with pytest.raises(CodesError, match="whole number"):
        upper_bound(0, 1)


def test_an_unknown_form_or_inequality_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'hamming'.*'entropy', 'gilbert-varshamov'"):
        upper_bound(16, 1, form="hamming")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"'markov'.*'chebyshev', 'cantelli'"):
        lower_bound([1], inequality="markov")  # type: ignore[arg-type]


def test_the_lower_bound_uses_the_population_variance() -> None:
    assert lower_bound([1, 3], 0.75) == pytest.approx(2 + 1 / math.sqrt(0.25))
    assert lower_bound([1, 3], 0.8, inequality="cantelli") == pytest.approx(2 + math.sqrt(0.8 / 0.2))


@given(st.lists(st.floats(0, 20), min_size=1, max_size=30), st.floats(0.51, 0.99))
def test_cantelli_is_never_above_chebyshev_and_both_cover_their_share(values: list[float], p: float) -> None:
    chebyshev, cantelli = lower_bound(values, p), lower_bound(values, p, inequality="cantelli")
    assert cantelli <= chebyshev
    assert np.mean(np.array(values) <= cantelli + 1e-9) >= p - 1e-9


@pytest.mark.parametrize("p", [0.5, 1.0, 0.2, math.nan])
def test_a_confidence_out_of_range_is_refused(p: float) -> None:
    with pytest.raises(ConfigError, match=r"above 0\.5 and below 1"):
        lower_bound([1, 2], p)


@pytest.mark.parametrize("values", [[], [[1.0]], [math.inf]])
def test_values_that_have_no_mean_are_refused(values: list[float]) -> None:
    with pytest.raises(InputError, match="one finite number per item"):
        lower_bound(values)


@pytest.mark.parametrize("delta", [1, 64, 3.2])
def test_a_delta_within_the_code_is_kept(delta: float) -> None:
    assert check_delta(delta, 64) == delta


@pytest.mark.parametrize("delta", [0, -1, 64.5, 65, math.nan])
def test_a_delta_that_no_code_can_have_is_refused(delta: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and at most 64"):
        check_delta(delta, 64)


@pytest.fixture
def ladder(monkeypatch: pytest.MonkeyPatch) -> Callable[..., DeltaChoice]:
    """Choose with given lower bounds (size, log2, literal) and upper bounds (paper, tightest)."""

    def choose(lowers: tuple[float, float, float], uppers: tuple[int | None, int | None]) -> DeltaChoice:
        by_form = dict(zip(("size", "log2", "literal"), lowers, strict=True))
        monkeypatch.setattr(LabelStatistics, "similarity", lambda _, form: by_form[form])
        monkeypatch.setattr(bounds_module, "lower_bound", lambda value, *_, **__: value)
        upper_of = dict(zip(("entropy", "gilbert-varshamov"), uppers, strict=True))
        monkeypatch.setattr(bounds_module, "upper_bound", lambda *_, form: upper_of[form])
        return choose_delta(np.eye(2, dtype=np.uint8), 16)

    return choose


@pytest.mark.parametrize(
    ("lowers", "uppers", "form", "delta"),
    [
        ((4.0, 3.0, 2.0), (7, 9), ("size", "independent"), 6),  # step 1; the middle 5.5 is rounded up
        ((8.0, 3.0, 2.0), (7, 9), ("log2", "independent"), 5),  # step 2, although |l_i| is below the tightest upper
        ((8.0, 7.5, 2.0), (7, 9), ("literal", "independent"), 5),  # step 3
        ((3.0, 2.5, 2.0), (1, 4), ("size", "joint"), 4),  # step 4, the most demanding lower bound that fits
        ((8.0, 2.5, 2.0), (None, 4), ("log2", "joint"), 3),  # step 5
        ((8.0, 3.9, 1.5), (1, 2), ("literal", "joint"), 2),  # step 6, coco66k at 16 bits
    ],
)
def test_the_policy_stops_at_the_first_step_that_is_feasible(
    ladder: Callable[..., DeltaChoice],
    lowers: tuple[float, float, float],
    uppers: tuple[int | None, int | None],
    form: tuple[str, str],
    delta: int,
) -> None:
    choice = ladder(lowers, uppers)
    assert (choice.used.lower_form, choice.used.upper_form[0]) == form
    assert (choice.delta, choice.feasible) == (delta, True)


@pytest.mark.parametrize(("upper", "delta"), [(2, 2), (None, 1)])
def test_if_nothing_is_feasible_the_tightest_upper_bound_is_used_and_flagged(
    ladder: Callable[..., DeltaChoice], upper: int | None, delta: int
) -> None:
    choice = ladder((8.0, 5.0, 3.0), (None, upper))
    assert (choice.delta, choice.feasible, choice.paper.upper) == (delta, False, None)
    assert choice.used.upper_form == ("joint", "gilbert-varshamov")


@given(st.floats(0, 40), st.integers(1, 40))
def test_the_rounded_middle_stays_between_the_bounds(lower: float, upper: int) -> None:
    bounds = Bounds(lower, "size", upper, ("independent", "entropy"))
    if bounds.feasible:
        assert lower - 1e-9 <= bounds.delta <= upper


def test_labels_and_their_statistics_give_the_same_choice() -> None:
    labels = np.random.default_rng(0).integers(0, 2, (40, 5), dtype=np.uint8)
    statistics = LabelStatistics.of(labels)
    assert choose_delta(labels, 24, confidence=0.8) == choose_delta(statistics, 24, confidence=0.8)
    tighter = choose_delta(statistics, 64, confidence=0.8, inequality="cantelli")
    assert tighter.paper.lower < choose_delta(statistics, 64, confidence=0.8).paper.lower


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


def test_a_missing_upper_bound_of_the_paper_is_shown_as_none() -> None:
    paper = Bounds(10.03, "size", None, ("independent", "entropy"))
    assert "10.03 (|l_i|) and none (independent H(L))" in DeltaChoice(16, 3, used=TIGHT, paper=paper).reason


def test_a_bound_missed_by_rounding_only_is_feasible() -> None:
    assert Bounds(3 + 1e-12, "size", 3, ("independent", "entropy")).feasible
    assert not Bounds(3 + 1e-6, "size", 3, ("independent", "entropy")).feasible


def test_a_choice_is_plain_json() -> None:
    value = DeltaChoice(16, 3, used=TIGHT, paper=PAPER).to_json()
    assert json.loads(json.dumps(value)) == value
    assert (value["delta"], value["feasible"], value["paper"]["feasible"]) == (3, True, False)
    assert value["used"]["upper_form"] == ["joint", "gilbert-varshamov"]
