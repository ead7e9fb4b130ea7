"""Successive halving with made-up scores: what is tried, what survives, and when a grid is continued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.tuning.halving import Halving, Options, Trials, key_of
from rmsh.core.errors import ConfigError
from rmsh.methods import method_class
from rmsh.methods.dcmh import DCMH

Measure = Callable[[Options], float]


def _trials(**changes: Any) -> Trials:
    content: dict[str, Any] = {
        "dataset": "a",
        "rounds": {10: 4, 20: 2},
        "variations": 3,
        "menu": {"epochs": [5, 10, 20], "dropout": [0.0, 0.2, 0.4]},
        "methods": {
            "cca-itq": {"grid": {"ridge": [0.01, 0.1, 1.0], "power": [0.5, 1.0, 2.0]}},
            "rmsh": {"preset": "paper", "grid": {"lambda2": [0.1, 1.0]}},
            "scm": {"grid": {"ridge": [0.001, 0.01]}},
        },
    }
    return Trials.parse(content | changes)


def _search(method: str, measure: Measure, *, seconds: float = 1.0, **changes: Any) -> tuple[Halving, list[Any]]:
    """A finished search whose scores are a function of the options, and its trials."""
    search, made = Halving(_trials(**changes), method, all_pairs=200), []
    for pairs, options in search.plan():
        made.append((pairs, options))
        search.done[key_of(pairs, options)] = {"score": measure(options), "cpu_seconds": seconds}
    return search, made


def _near(ridge: float) -> Measure:
    return lambda options: -abs(options["ridge"] - ridge)


def test_many_configurations_start_and_the_best_half_goes_on_with_more_pairs() -> None:
    _, made = _search("cca-itq", _near(0.1), variations=0)
    assert [pairs for pairs, _ in made] == [10, 10, 10, 10, 20, 20]
    first = sorted((options for _, options in made[:4]), key=lambda options: -_near(0.1)(options))
    assert [options for _, options in made[4:]] == first[:2]


def test_the_first_configuration_is_the_default_with_the_values_of_all_options_of_the_grid() -> None:
    (_, first), *_ = _search("cca-itq", _near(0.1))[1]
    assert first == {"ridge": 0.01, "power": 1.0}


def test_a_search_from_a_preset_keeps_the_options_that_it_does_not_vary() -> None:
    start = Halving(_trials(), "rmsh", all_pairs=200).start
    assert start == dict(method_class("rmsh").presets["paper"])
    assert start["epochs"] == 50


def test_all_methods_try_the_same_values_of_the_menu_together() -> None:
    methods: dict[str, Any] = {name: {} for name in ("rmsh", "dcmh")}
    menu = {"epochs": [5, 10, 20], "learning_rate": [n / 1000 for n in range(1, 10)]}
    trials = _trials(methods=methods, menu=menu)
    one, other = (Halving(trials, name, all_pairs=200).candidates(9)[1:] for name in methods)
    drawn = [[(options["epochs"], options["learning_rate"]) for options in each] for each in (one, other)]
    assert drawn[0] == drawn[1]
    assert {epochs for epochs, _ in drawn[0]} == {5, 10, 20}


def test_a_grid_with_fewer_points_gives_fewer_candidates_and_no_repetitions() -> None:
    candidates = Halving(_trials(), "scm", all_pairs=200).candidates(16)
    assert candidates == [{"ridge": 0.001}, {"ridge": 0.01}]


def test_a_grid_is_continued_until_its_best_value_is_inside() -> None:
    search, made = _search("scm", _near(1.0), variations=5)
    assert [options["ridge"] for _, options in made[4:]] == [0.1, 1.0, 10.0]
    assert search.best() == {"ridge": 1.0}
    assert search.edges({"ridge": 1.0}) == []


def test_a_value_at_the_edge_is_named_if_the_trials_are_used_up() -> None:
    search, made = _search("scm", _near(50.0), variations=1)
    assert (search.best(), len(made)) == ({"ridge": 0.1}, 5)
    assert search.edges({"ridge": 0.1}) == ["ridge"]


def test_further_trials_continue_a_grid_only_while_its_best_value_is_at_the_edge() -> None:
    search, made = _search("scm", _near(50.0), variations=1, extensions=4)
    assert [options["ridge"] for _, options in made[4:]] == [0.1, 1.0, 10.0, 100.0]
    assert search.edges({"ridge": 10.0}) == []
    inside = {"scm": {"grid": {"ridge": [0.001, 0.01, 0.1]}}}
    _, made = _search("scm", _near(0.01), variations=0, extensions=4, methods=inside)
    assert [pairs for pairs, _ in made] == [10, 10, 10, 20, 20]


def test_a_method_without_extensions_has_no_further_trials() -> None:
    methods = {"scm": {"grid": {"ridge": [0.001, 0.01]}, "extend": False}}
    _, made = _search("scm", _near(50.0), variations=1, extensions=4, methods=methods)
    assert len(made) == 5


def test_a_grid_is_continued_towards_the_bound_of_its_option_where_the_next_value_would_exceed_it() -> None:
    """CMFH's weight is below 1, and 0.9 * 0.9 / 0.5 is not."""
    grid = {"cmfh": {"grid": {"weight": [0.25, 0.5, 0.9]}}}
    search, made = _search("cmfh", lambda options: -abs(float(options["weight"]) - 0.96), methods=grid, variations=4)
    assert [options["weight"] for _, options in made[5:]] == [0.95, 0.975]
    assert search.best() == {"weight": 0.95}
    assert search.edges({"weight": 0.95}) == []
    search, _ = _search("cmfh", lambda options: float(options["weight"]), methods=grid, variations=2)
    assert search.edges({"weight": 0.975}) == ["weight"]


def test_a_value_at_the_bound_of_its_option_is_no_edge() -> None:
    grid = {"dcmh": {"grid": {"dropout": [0.4, 0.2, 0.0]}}}
    search, _ = _search("dcmh", lambda options: -float(options["dropout"]), methods=grid, variations=2)
    best = search.best()
    assert best is not None
    assert best["dropout"] == 0.0
    assert "dropout" not in search.edges(best)


def test_epochs_are_not_continued_beyond_the_time_limit_and_are_cut_in_final_runs() -> None:
    slow: dict[str, Any] = {"dcmh": {}}
    search, made = _search("dcmh", lambda o: float(o["epochs"]), methods=slow, menu={"epochs": [5, 10]}, seconds=200)
    assert max(options["epochs"] for _, options in made) == max(10, DCMH.default_epochs)
    best = search.best()
    assert best is not None
    assert search.seconds(best) == 2000  # ten times as many pairs as a trial
    assert search.final(best) == best | {"epochs": int(best["epochs"] * 1800 / 2000)}
    assert search.edges(best) == []


def test_strings_and_switches_are_varied_too() -> None:
    menu = {"scaling": ["standardise", "norm"], "batch_norm": [False, True]}
    wanted = {"scaling": "norm", "batch_norm": True}
    grid: dict[str, Any] = {"rmsh": {"preset": "paper", "grid": {}}}
    search, _ = _search("rmsh", lambda o: float(sum(o[k] == v for k, v in wanted.items())), methods=grid, menu=menu)
    best = search.best()
    assert best is not None
    assert {name: best[name] for name in wanted} == wanted


def test_a_configuration_that_is_passed_over_leaves_the_choice_to_the_next() -> None:
    scm = {"grid": {"ridge": [0.001, 0.01]}, "passed_over": 1}
    search, _ = _search("scm", _near(1.0), variations=5, methods={"scm": scm})
    assert search.best() == {"ridge": 0.1}  # 0.9 away from the best, 10.0 is 9 away
    search.done = {key_of(20, {"ridge": 0.001}): {"score": 0.1, "cpu_seconds": 1.0}}
    assert search.best() is None


def test_a_failed_trial_is_never_the_best() -> None:
    search = Halving(_trials(), "scm", all_pairs=200)
    outcomes: list[dict[str, Any]] = [{"error": "no luck"}, {"score": 0.1}]
    search.done = {
        key_of(20, {"ridge": r}): {**o, "cpu_seconds": 1.0} for r, o in zip((0.001, 0.01), outcomes, strict=True)
    }
    assert search.best() == {"ridge": 0.01}
    search.done = {key_of(20, {"ridge": 0.001}): {"error": "no luck", "cpu_seconds": 1.0}}
    assert search.best() is None


@pytest.mark.parametrize("rounds", [{20: 4, 10: 2}, {10: 2, 20: 4}, {}])
def test_rounds_with_fewer_pairs_or_more_configurations_than_before_are_refused(rounds: dict[int, int]) -> None:
    with pytest.raises(ConfigError, match="rounds"):
        _trials(rounds=rounds)
