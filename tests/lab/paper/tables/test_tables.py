from __future__ import annotations

from pathlib import Path

from lab.paper.lineup import line_up
from lab.paper.outcomes import Outcome, with_awaited
from lab.paper.tables.ablation import ablation_table
from lab.paper.tables.catalogue import make_tables, write_table
from lab.paper.tables.codes import code_table
from lab.paper.tables.comparison import comparison_table
from lab.paper.tables.costs import cost_table
from lab.paper.tables.precision import precision_table
from lab.paper.tables.table import Row, Table
from rmsh.compare.grid import Run


def _row(table: Table, name: str) -> Row:
    return next(row for row in table.rows if row.name == name)


def _texts(table: Table, name: str) -> list[str]:
    return [cell.text for cell in _row(table, name).cells]


def test_the_best_of_the_eight_is_bold_with_the_sign_of_its_test(all_outcomes: list[Outcome]) -> None:
    table = comparison_table(line_up(all_outcomes, "coco66k"))
    assert table.columns[:4] == [f"I → T {bits} bits" for bits in (16, 32, 64, 128)]
    bold = {row.name for row in table.rows for cell in row.cells if cell.bold}
    assert bold == {"RMSH"}
    assert [cell.mark for cell in _row(table, "RMSH").cells] == ["†", "†", "*", "†"] * 2
    assert _texts(table, "RMSH")[2] == "0.6010 ± 0.0010"
    assert {cell.mark for cell in _row(table, "SVHN").cells} == {""}


def test_a_method_beyond_the_eight_is_shown_and_never_bold(make_outcome) -> None:
    outcomes = [
        make_outcome(ndcg=0.5),
        make_outcome(method="svhn", ndcg=0.4),
        make_outcome(method="scm", ndcg=0.9),
        make_outcome(method="mlp", bits=0, ndcg=0.8),
    ]
    table = comparison_table(line_up(outcomes, "coco66k"))
    assert _texts(table, "SCM") == ["0.9000", "0.9000"]
    assert _texts(table, "no codes: MLP classifier") == ["0.8000", "0.8000"]
    assert [row.name for row in table.rows if row.cells[0].bold] == ["RMSH"]
    assert [row.name for row in table.rows][-2:] == ["SCM", "no codes: MLP classifier"]
    assert any(note.startswith("Bold: the best of those of the eight methods that have scores") for note in table.notes)


def test_a_method_by_itself_is_the_best_of_nothing(make_outcome) -> None:
    table = comparison_table(line_up([make_outcome()], "coco66k"))
    assert not [cell for row in table.rows for cell in row.cells if cell.bold]


def test_missing_and_failed_runs_are_said_in_words(make_outcome, fail_outcome) -> None:
    outcomes = [
        make_outcome(),
        fail_outcome(method="ssah"),
        fail_outcome(method="tdh"),
        make_outcome(method="tdh", seed=1),
    ]
    table = comparison_table(line_up(outcomes, "coco66k"))
    assert _texts(table, "SSAH") == ["failed", "failed"]
    assert _texts(table, "CMFH") == ["not run", "not run"]
    assert _texts(table, "TDH") == ["0.5000", "0.5000"]  # one of its two seeds
    record = next(r for r in table.records if r["name"] == "TDH")
    assert (record["failed"], record["files"]) == (1, "coco66k/tdh-64-s1.json")


def test_the_papers_numbers_stand_below_ours_where_the_data_is_the_same(make_outcome) -> None:
    ours = comparison_table(line_up([make_outcome()], "coco66k"))
    assert _texts(ours, "RMSH in the paper") == ["0.3855", "0.3050"]
    assert _row(ours, "RMSH in the paper").quiet
    record = next(r for r in ours.records if r["name"] == "RMSH" and r["direction"] == "i2t")
    assert (record["paper"], record["minus_paper"]) == (0.3855, 0.1145)
    assert any("ResNet-152" in note for note in ours.notes)
    others = comparison_table(line_up([make_outcome(dataset="scenes")], "scenes"))
    assert not [row for row in others.rows if row.quiet]


def test_a_table_says_how_many_of_its_runs_are_still_to_be_made(make_outcome) -> None:
    wanted = [Run("coco66k", "rmsh", seed=seed) for seed in range(3)]
    begun = comparison_table(line_up(with_awaited([make_outcome()], wanted), "coco66k"))
    assert "2 runs of this table are still to be made; a cell shows the seeds that it has." in begun.notes
    whole = comparison_table(line_up([make_outcome(seed=seed) for seed in range(3)], "coco66k"))
    assert not [n for n in whole.notes if "still to be made" in n]


def test_a_random_ranking_is_the_first_row(make_outcome) -> None:
    table = comparison_table(line_up([make_outcome()], "coco66k"))
    assert (table.rows[0].name, table.rows[0].cells[0].text) == ("a random ranking", "0.1300")


def test_no_runs_with_codes_give_no_table(make_outcome) -> None:
    reference = make_outcome(method="mlp", bits=0)
    assert comparison_table(line_up([reference], "coco66k")) is None
    for make in (precision_table, cost_table, code_table):
        assert make(line_up([reference], "coco66k")) is None
    assert ablation_table([reference], "coco66k") is None


def test_the_ablation_tests_each_variant_against_the_whole(make_outcome) -> None:
    scores = {"RMSH": (0.60, {}), "RMSH-T": (0.58, {"triplet": False}), "RMSH-P": (0.61, {"pseudo_codes": False})}
    outcomes = [make_outcome(seed=s, ndcg=v + 0.001 * s, options=o) for v, o in scores.values() for s in range(3)]
    table = ablation_table(outcomes, "coco66k")
    assert [cell.mark for cell in _row(table, "RMSH-T").cells] == ["*", "*"]
    assert _row(table, "RMSH-P").cells[0].bold
    assert not _row(table, "RMSH").cells[0].bold
    assert _texts(table, "RMSH-C") == ["not run", "not run"]
    assert _texts(table, "RMSH-C in the paper") == ["0.2038", "0.1868"]


def test_the_ablation_says_on_what_each_length_was_learned(make_outcome) -> None:
    settings = {16: {"train": 20_000}, 64: {}}
    outcomes = [
        make_outcome(bits=bits, options={"epochs": 12, **options}, **setting)
        for bits, setting in settings.items()
        for options in ({}, {"triplet": False})
    ]
    notes = ablation_table(outcomes, "coco66k").notes
    assert "16 bits: 20,000 training pairs, epochs 12." in notes
    assert "64 bits: all training pairs, epochs 12." in notes


def test_costs_are_means_over_seeds_and_the_peak_of_memory(make_outcome) -> None:
    outcomes = [make_outcome(seed=seed, ndcg=score) for seed, score in enumerate((0.4, 0.6))]
    table = cost_table(line_up(outcomes, "coco66k"))
    assert _texts(table, "RMSH") == ["70", "900"]  # 20 + 100 * NDCG seconds, as these runs were made up


def test_precision_has_its_own_best_method_beside_chance(make_outcome) -> None:
    outcomes = [make_outcome(ndcg=0.4), make_outcome(method="tdh", ndcg=0.6), make_outcome(method="scm", ndcg=0.9)]
    table = precision_table(line_up(outcomes, "coco66k"))
    assert "Bold: the best of those of the eight methods that have scores." in table.notes[0]
    assert _texts(table, "TDH") == ["0.7000", "0.7000"]  # NDCG + 0.1, as these runs were made up
    assert [_row(table, name).cells[0].bold for name in ("RMSH", "TDH", "SCM")] == [False, True, False]
    assert _texts(table, "a random ranking") == ["0.1300", "0.1300"]
    assert _texts(table, "DCMH") == ["not run", "not run"]


def test_codes_are_those_of_the_worse_modality(make_outcome) -> None:
    outcomes = [make_outcome(bits=4), make_outcome(method="mlp", bits=0)]
    table = code_table(line_up(outcomes, "coco66k"))
    assert _texts(table, "RMSH") == ["80", "31", "25"]  # (25 + 50 + 50 + 0) / 4 % is the rarer value, one bit of four
    assert _texts(table, "DCMH") == ["not run"] * 3
    assert "no codes: MLP classifier" not in [row.name for row in table.rows]


def test_every_table_is_written_in_four_forms(all_outcomes: list[Outcome], tmp_path: Path) -> None:
    tables = make_tables(all_outcomes)["coco66k"]
    names = ["table1-coco66k", "table2-coco66k", "map-coco66k", "costs-coco66k", "codes-coco66k"]
    assert [table.name for table in tables] == names
    files = [path for table in tables for path in write_table(table, tmp_path)]
    assert {path.suffix for path in files} == {".md", ".csv", ".tex", ".html"}
    assert all(path.stat().st_size > 100 for path in files)
