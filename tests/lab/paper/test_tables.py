from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.paper.results import UNSEEN_METRICS, UNSEEN_RECALL, Experiment, RunResult
from lab.paper.table import Row, Table, write_table
from lab.paper.tables import (
    _settings,
    ablation_table,
    code_table,
    comparison_table,
    cost_table,
    make_tables,
    map_table,
    recall_table,
    unseen_table,
)
from rmsh.compare.run import Run


def _compared(*results: RunResult, dataset: str = "coco66k") -> Experiment:
    return Experiment(dataset, {"table 1": list(results)})


def _row(table: Table, name: str) -> Row:
    return next(row for row in table.rows if row.name == name)


def _texts(table: Table, name: str) -> list[str]:
    return [cell.text for cell in _row(table, name).cells]


def test_the_best_of_the_eight_is_bold_with_the_sign_of_its_test(everything: Experiment) -> None:
    table = comparison_table(everything)
    assert table.columns[:4] == [f"I → T {bits} bits" for bits in (16, 32, 64, 128)]
    bold = {row.name for row in table.rows for cell in row.cells if cell.bold}
    assert bold == {"RMSH"}
    # The seeds of 64 bits tell the noise of other lengths; from text to image they have none.
    assert {cell.mark for cell in _row(table, "RMSH").cells} == {"*"}
    assert _texts(table, "RMSH")[2] == "0.6010 ± 0.0010"
    assert {cell.mark for cell in _row(table, "SVHN").cells} == {""}


def test_a_method_beyond_the_eight_is_shown_and_never_bold(make_result: Callable[..., RunResult]) -> None:
    results = [
        make_result(ndcg=0.5),
        make_result(method="svhn", ndcg=0.4),
        make_result(method="scm", ndcg=0.9),
        make_result(method="mlp", bits=0, ndcg=0.8),
    ]
    table = comparison_table(_compared(*results))
    assert _texts(table, "SCM") == ["0.9000", "0.9000"]
    assert _texts(table, "no codes: MLP classifier") == ["0.8000", "0.8000"]
    assert [row.name for row in table.rows if row.cells[0].bold] == ["RMSH"]
    assert [row.name for row in table.rows][-2:] == ["SCM", "no codes: MLP classifier"]
    assert any(note.startswith("Bold: the best of the eight methods that have scores") for note in table.notes)


def test_a_method_by_itself_is_the_best_of_nothing(make_result: Callable[..., RunResult]) -> None:
    table = comparison_table(_compared(make_result()))
    assert not [cell for row in table.rows for cell in row.cells if cell.bold]


def test_missing_and_failed_runs_are_said_in_words(
    make_result: Callable[..., RunResult], fail_result: Callable[..., RunResult]
) -> None:
    results = [
        make_result(),
        fail_result(method="ssah"),
        fail_result(method="tdh"),
        make_result(method="tdh", seed=1),
        RunResult(Run("coco66k", "uch"), {"status": "earlier", "reason": "a new version"}),
    ]
    table = comparison_table(_compared(*results))
    assert _texts(table, "SSAH") == ["failed", "failed"]
    assert _texts(table, "CMFH") == ["not run", "not run"]
    assert _texts(table, "UCH") == ["earlier code", "earlier code"]
    assert _texts(table, "TDH") == ["0.5000", "0.5000"]  # one of its two seeds
    record = next(r for r in table.records if r["name"] == "TDH")
    assert (record["failed"], record["files"]) == (1, "coco66k/tdh-64-s1.json")


def test_the_papers_numbers_stand_below_ours_where_the_data_is_the_same(make_result: Callable[..., RunResult]) -> None:
    ours = comparison_table(_compared(make_result()))
    assert _texts(ours, "RMSH in the paper") == ["0.3855", "0.3050"]
    assert _row(ours, "RMSH in the paper").italic
    record = next(r for r in ours.records if r["name"] == "RMSH" and r["direction"] == "i2t")
    assert (record["paper"], record["minus_paper"]) == (0.3855, 0.1145)
    assert any("ResNet-152" in note for note in ours.notes)
    others = comparison_table(_compared(make_result(dataset="scenes"), dataset="scenes"))
    assert not [row for row in others.rows if row.italic]


def test_rmsh_as_printed_has_its_own_row_above_the_papers_numbers(make_result: Callable[..., RunResult]) -> None:
    table = comparison_table(_compared(make_result(), make_result(preset="paper", ndcg=0.4)))
    names = [row.name for row in table.rows]
    assert names[names.index("RMSH as printed") + 1] == "RMSH in the paper"
    assert names.count("RMSH in the paper") == 1
    assert any('"RMSH as printed" has the constants of the paper' in note for note in table.notes)


def test_a_table_says_how_many_of_its_runs_are_missing(make_result: Callable[..., RunResult]) -> None:
    missing = [Run("coco66k", "rmsh", seed=seed) for seed in (1, 2)]
    begun = comparison_table(_compared(make_result(), *(RunResult(run, {"status": "missing"}) for run in missing)))
    assert any(note.startswith("2 runs of this table are missing") for note in begun.notes)
    whole = comparison_table(_compared(*(make_result(seed=seed) for seed in range(3))))
    assert not [n for n in whole.notes if "are missing" in n]


def test_a_random_ranking_is_the_first_row(make_result: Callable[..., RunResult]) -> None:
    table = comparison_table(_compared(make_result()))
    assert (table.rows[0].name, table.rows[0].cells[0].text) == ("random ranking", "0.1300")


def test_no_runs_with_codes_give_no_table(make_result: Callable[..., RunResult]) -> None:
    reference = make_result(method="mlp", bits=0)
    assert comparison_table(_compared(reference)) is None
    for make in (map_table, cost_table, code_table):
        assert make(_compared(reference)) is None
    assert ablation_table(_compared(reference)) is None


def test_the_ablation_tests_each_variant_against_the_whole(make_result: Callable[..., RunResult]) -> None:
    scores = {"RMSH": (0.60, {}), "RMSH-T": (0.58, {"triplet": False}), "RMSH-P": (0.61, {"pseudo_codes": False})}
    runs = [
        make_result(seed=s, ndcg=v + 0.001 * s, options=o, tag=name)
        for name, (v, o) in scores.items()
        for s in range(3)
    ]
    table = ablation_table(Experiment("coco66k", {"ablation": runs}))
    assert [cell.mark for cell in _row(table, "RMSH-T").cells] == ["*", "*"]
    assert _row(table, "RMSH-P").cells[0].bold
    assert not _row(table, "RMSH").cells[0].bold
    assert _texts(table, "RMSH-C") == ["not run", "not run"]
    assert _texts(table, "RMSH-C in the paper") == ["0.2038", "0.1868"]
    shares = "triplets 0.10, classification 43.00, quantisation 5.00."
    assert f"64 bits, last epoch, weighted terms of the loss: {shares}" in table.notes


def test_the_ablation_as_printed_is_a_table_of_its_own(make_result: Callable[..., RunResult]) -> None:
    runs = [make_result(preset=preset, tag="RMSH") for preset in (None, "paper")]
    experiment = Experiment("coco66k", {"ablation": runs})
    tuned, printed = ablation_table(experiment), ablation_table(experiment.as_printed)
    assert (tuned.name, printed.name) == ("table2-coco66k", "table2-printed-coco66k")
    assert "RMSH as printed without one of its parts" in printed.title
    assert [table.name for table in make_tables(experiment)] == [tuned.name, printed.name]


def test_the_ablation_says_on_what_each_length_was_learned(make_result: Callable[..., RunResult]) -> None:
    settings = {16: {"train": 20_000}, 64: {}}
    results = [
        make_result(bits=bits, options={"epochs": 12, **options}, tag=tag, **setting)
        for bits, setting in settings.items()
        for tag, options in (("RMSH", {}), ("RMSH-T", {"triplet": False}))
    ]
    notes = ablation_table(Experiment("coco66k", {"ablation": results})).notes
    assert "16 bits: 20,000 training pairs, epochs 12." in notes
    assert "64 bits: all training pairs, epochs 12." in notes


def test_costs_are_those_of_the_first_seed(make_result: Callable[..., RunResult]) -> None:
    results = [make_result(seed=seed, ndcg=score) for seed, score in enumerate((0.4, 0.6))]
    table = cost_table(_compared(*results))
    assert _texts(table, "RMSH") == ["60", "900"]  # 20 + 100 * NDCG seconds, as these runs were made up


def test_precision_has_its_own_best_method_beside_chance(make_result: Callable[..., RunResult]) -> None:
    results = [make_result(ndcg=0.4), make_result(method="tdh", ndcg=0.6), make_result(method="scm", ndcg=0.9)]
    table = map_table(_compared(*results))
    assert "Bold: the best of the eight methods that have scores." in table.notes[0]
    assert _texts(table, "TDH") == ["0.7000", "0.7000"]  # NDCG + 0.1, as these runs were made up
    assert [_row(table, name).cells[0].bold for name in ("RMSH", "TDH", "SCM")] == [False, True, False]
    assert _texts(table, "random ranking") == ["0.1300", "0.1300"]
    assert _texts(table, "DCMH") == ["not run", "not run"]


def test_codes_are_those_of_the_worse_modality(make_result: Callable[..., RunResult]) -> None:
    results = [make_result(bits=4), make_result(method="mlp", bits=0)]
    table = code_table(_compared(*results))
    # (25 + 50 + 50 + 0) / 4 % is the rarer value, one bit of four
    assert _texts(table, "RMSH") == ["80", "31", "25", "–"]
    assert _texts(table, "DCMH") == ["not run"] * 4
    assert "no codes: MLP classifier" not in [row.name for row in table.rows]


def test_what_the_sign_costs_is_the_mean_of_both_directions(make_result: Callable[..., RunResult]) -> None:
    result = make_result(bits=4)
    values = {d: {"codes": {"ndcg@500": 0.5}, "values": {"ndcg@500": v}} for d, v in (("i2t", 0.6), ("t2i", 0.52))}
    table = code_table(_compared(RunResult(result.run, {**result.result, "relaxed": values})))
    assert _texts(table, "RMSH")[-1] == "0.060"


def test_every_table_is_written_in_four_forms(everything: Experiment, tmp_path: Path) -> None:
    tables = make_tables(everything)
    names = ["table1-coco66k", "table2-coco66k", "map-coco66k", "costs-coco66k", "codes-coco66k"]
    assert [table.name for table in tables] == names
    files = [path for table in tables for path in write_table(table, tmp_path)]
    assert {path.suffix for path in files} == {".md", ".csv", ".tex", ".html"}
    assert all(path.stat().st_size > 100 for path in files)


def _unseen(run: Run, value: float, prefixes: dict[str, float]) -> RunResult:
    def scores(mean: float) -> dict[str, Any]:
        names = (*UNSEEN_METRICS.values(), *UNSEEN_RECALL.values())
        return {d: {name: {"value": mean, "chance": 0.1} for name in names} for d in ("i2t", "t2i")}

    result = {
        "status": "done",
        "run": run.to_json(),
        "training_pairs": 70,
        "scores": scores(value),
        "prefixes": {bits: scores(mean) for bits, mean in prefixes.items()},
        "queries": {"i2t": {"asked": 9, "database": 20}},
        "split": {"held_out": {"count": 20, "sha256": "cd" * 32}},
        "definitions": {"recall": "recall@k: made up"},
    }
    return RunResult(run, result)


def test_unseen_pairs_have_a_table_of_their_own_best_first() -> None:
    rmsh = [_unseen(Run("coco66k", "rmsh", seed=seed, protocol="unseen"), 0.4 + 0.1 * seed, {}) for seed in (0, 1)]
    nested = _unseen(Run("coco66k", "glint", 64, protocol="unseen", prefixes=(32,)), 0.5, {"32": 0.3})
    absent = RunResult(Run("coco66k", "scm", protocol="unseen"), {"status": "missing"})
    table = unseen_table(Experiment("coco66k", {"unseen": [absent, *rmsh, nested]}))
    assert table is not None
    assert [row.name for row in table.rows] == [
        "random ranking",
        "GLINT, 64 bits",
        "RMSH, 64 bits",
        "GLINT, 32 bits of 64",
        "SCM, 64 bits",
    ]
    assert [row.cells[0].text for row in table.rows] == ["0.1000", "0.5000", "0.4500 ± 0.0707", "0.3000", "not run"]
    assert table.columns[:3] == ["I → T NDCG@10", "I → T NDCG@all", "I → T mAP@all"]  # there are 20 items
    assert "70 training pairs, 9 queries, 20 database pairs (sha256 cdcd" in " ".join(table.notes)
    assert unseen_table(Experiment("coco66k", {})) is None


def test_recall_on_unseen_pairs_is_in_the_same_order_with_its_definition() -> None:
    better, printed = Run("coco66k", "scm", protocol="unseen"), Run("coco66k", "rmsh", preset="paper", tag="paper")
    runs = [_unseen(printed, 0.3, {}), _unseen(better, 0.5, {})]
    table = recall_table(Experiment("coco66k", {"unseen": runs}))
    assert table is not None
    assert [row.name for row in table.rows] == ["random ranking", "SCM, 64 bits", "RMSH as printed, 64 bits"]
    assert [name for name in table.columns if "I → T" in name] == [f"I → T recall@{k}" for k in (1, 5, 10)]
    assert table.notes[-1] == "recall@k: made up."


def test_readings_come_last_and_rows_with_other_database_codes_have_no_recall() -> None:
    runs = [
        _unseen(Run("coco66k", "cmdvh-reading", protocol="unseen"), 0.9, {}),
        _unseen(Run("coco66k", "svhn", protocol="unseen", options={"database_codes": "labels"}), 0.5, {}),
        _unseen(Run("coco66k", "scm", protocol="unseen"), 0.4, {}),
    ]
    made = [make(Experiment("coco66k", {"unseen": runs})) for make in (unseen_table, recall_table)]
    names = [[row.name for row in table.rows[1:]] for table in made if table is not None]
    labels = "SVHN (database from labels), 64 bits"
    assert names == [[labels, "SCM, 64 bits", "CMDVH (reading), 64 bits"], ["SCM, 64 bits", "CMDVH (reading), 64 bits"]]


def test_a_setting_that_all_lengths_share_is_written_once() -> None:
    def group(bits: int, train: int) -> list[RunResult]:
        return [RunResult(Run("coco66k", "rmsh", bits, train=train), {"status": "missing"})]

    assert _settings({16: group(16, 20), 32: group(32, 20)}) == ["All lengths: 20 training pairs."]
    assert _settings({16: group(16, 20), 32: group(32, 30)}) == [
        "16 bits: 20 training pairs.",
        "32 bits: 30 training pairs.",
    ]
