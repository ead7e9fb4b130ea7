from __future__ import annotations

from lab.paper.lineup import Entry, is_plain, line_up, line_up_ablation
from lab.paper.outcomes import NDCG, Outcome


def test_the_comparison_has_the_training_pairs_that_most_methods_share(make_outcome) -> None:
    outcomes = [make_outcome(method=m) for m in ("rmsh", "dcmh")] + [
        make_outcome(method="rmsh", train=50, seed=s) for s in range(9)
    ]
    lineup = line_up(outcomes, "coco66k")
    assert [o.run.train for o in lineup.cell(Entry("rmsh"), 64)] == [None]


def test_options_chosen_on_validation_do_not_hide_a_method_and_sweeps_do_not_join_it(make_outcome) -> None:
    chosen = {"lambda1": 1.0, "epochs": 15}
    outcomes = [make_outcome(bits=bits, options=chosen) for bits in (16, 64)]
    outcomes += [make_outcome(bits=64, options={**chosen, "lambda2": v}) for v in (0.1, 0.2)]
    lineup = line_up(outcomes, "coco66k")
    assert lineup.bits == [16, 64]
    assert [o.run.options for o in lineup.cell(Entry("rmsh"), 64)] == [chosen]


def test_noise_validation_and_missing_parts_are_not_plain(make_outcome) -> None:
    assert is_plain(make_outcome().run)
    for parameters in (
        {"label_noise": 0.2},
        {"image_noise": 1.0},
        {"validation": True},
        {"options": {"triplet": False}},
    ):
        assert not is_plain(make_outcome(**parameters).run)


def test_methods_are_ranked_by_their_mean_and_without_those_that_failed(make_outcome, fail_outcome) -> None:
    outcomes = [make_outcome(method="tdh", ndcg=0.4), make_outcome(method="tdh", seed=1, ndcg=0.7)]
    outcomes += [
        make_outcome(method="rmsh", ndcg=0.5),
        fail_outcome(method="ssah"),
        make_outcome(method="scm", ndcg=0.9),
    ]
    ranked = line_up(outcomes, "coco66k").ranked(64, "i2t", metric=NDCG)
    assert ranked == [Entry("tdh"), Entry("rmsh")]  # scm is not one of the eight


def test_presets_are_lines_of_their_own_and_a_reference_is_at_all_lengths(make_outcome) -> None:
    outcomes = [make_outcome(bits=16), make_outcome(bits=16, preset="paper"), make_outcome(method="mlp", bits=0)]
    lineup = line_up(outcomes, "coco66k")
    assert set(lineup.runs) == {Entry("rmsh"), Entry("rmsh", "paper"), Entry("mlp")}
    assert lineup.bits == [16]
    assert lineup.cell(Entry("mlp"), 16) == lineup.cell(Entry("mlp"), 64) != []


def test_an_ablation_is_compared_under_its_own_parameters(make_outcome) -> None:
    outcomes = [make_outcome(ndcg=0.6), make_outcome(options={"triplet": False})]
    outcomes += [make_outcome(bits=16, train=50), make_outcome(bits=16, train=50, options={"triplet": False})]
    outcomes += [make_outcome(bits=16), make_outcome(bits=32)]
    lengths = line_up_ablation(outcomes, "coco66k")
    assert list(lengths) == [16, 64]
    assert lengths[16]["RMSH"][0].run.train == 50


def test_two_parts_off_are_no_variant_of_the_paper(all_outcomes: list[Outcome], make_outcome) -> None:
    both = make_outcome(options={"triplet": False, "classification": False})
    assert list(line_up_ablation([*all_outcomes, both], "coco66k")[64]) == ["RMSH", "RMSH-T", "RMSH-C", "RMSH-P"]


def test_what_is_shown_at_one_length_is_shown_at_the_papers_64_bits_or_where_most_runs_are(make_outcome) -> None:
    shorter = [make_outcome(bits=16), make_outcome(method="dcmh", bits=16), make_outcome(bits=32)]
    assert line_up(shorter, "coco66k").usual_bits == 16
    assert line_up([*shorter, make_outcome(bits=64)], "coco66k").usual_bits == 64
