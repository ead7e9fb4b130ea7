from __future__ import annotations

from pathlib import Path

import pytest

from lab.paper.outcomes import Outcome, mean_score, read_outcomes, rest, seeds_apart, vary
from rmsh.compare.grid import Run
from rmsh.core.errors import FormatError


def test_outcomes_are_read_from_all_folders(runs_folder: Path, all_outcomes: list[Outcome]) -> None:
    read = read_outcomes(runs_folder)
    assert {outcome.run.path for outcome in read} == {outcome.run.path for outcome in all_outcomes}
    assert read[0].score("i2t") == next(o for o in all_outcomes if o.run == read[0].run).score("i2t")


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(FormatError, match="not the result of a run"):
        read_outcomes(tmp_path)


def test_a_sweep_has_runs_that_differ_in_one_option_alone(make_outcome) -> None:
    outcomes = [make_outcome(options={"delta": d}, ndcg=d / 10) for d in (4.0, 2.0)]
    outcomes += [make_outcome(), make_outcome(options={"delta": 8.0, "epochs": 3}), make_outcome(bits=16)]
    (sweep,) = vary(outcomes, "delta")
    assert list(sweep.points) == [2.0, 4.0, 24.0]  # the last is the middle of the bounds, which a run found itself
    assert sweep.means("i2t") == [0.2, 0.4, 0.5]


def test_a_sweep_over_an_option_finds_the_default_in_the_configuration(make_outcome) -> None:
    (sweep,) = vary([make_outcome(), make_outcome(options={"lambda1": 1.0})], "lambda1")
    assert list(sweep.points) == [0.3, 1.0]


def test_a_sweep_leaves_failed_runs_out(make_outcome, fail_outcome) -> None:
    assert not vary([make_outcome(), fail_outcome(options={"delta": 2.0})], "delta")


def test_seeds_are_averaged_and_their_deviation_is_that_of_a_sample(make_outcome) -> None:
    group = [make_outcome(seed=seed, ndcg=score) for seed, score in enumerate((0.5, 0.6, 0.7))]
    assert mean_score(group, "i2t") == pytest.approx(0.6)
    assert seeds_apart(group, "i2t") == pytest.approx(0.1)
    assert seeds_apart(group[:1], "i2t") is None


def test_the_rest_of_a_run_has_its_noise_and_its_data(make_outcome) -> None:
    runs = [Run("a", "scm"), Run("b", "scm"), Run("a", "scm", label_noise=0.2), Run("a", "scm", train=9)]
    assert len({rest(run) for run in runs}) == 4
    assert len({rest(run, "label_noise", "dataset", "train") for run in runs}) == 1


def test_the_values_of_queries_come_back_from_their_packed_form(make_outcome) -> None:
    outcome = make_outcome(per_query=[0.0, 1.0])
    assert outcome.per_query("i2t").tolist() == [0.0, 1.0]
    assert Outcome(outcome.run, {"status": "done"}).per_query("i2t") is None
