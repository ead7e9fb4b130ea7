"""The numbers of the pages: generated from current results, and a change of either is found."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lab import cells, numbers, tables
from lab.data import GRIDS, RESULTS
from lab.grid import read_grid
from lab.numbers import generated, pages, problems, remarks
from lab.paper.published import method_title
from lab.sources import Sources
from lab.tuning import tables as tuning_tables
from rmsh.compare.result import failure, write_result
from rmsh.compare.run import Run
from rmsh.methods.cmfh import CMFH
from rmsh.methods.scm import SCM

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="a source distribution contains no results")

PAGE = "# Title\n\n<!-- numbers: glint-scale -->\n<!-- end -->\n\nText.\n"


def test_every_number_of_the_pages_is_current() -> None:
    assert problems(pages()) == []


def test_every_result_names_a_commit_of_this_repository() -> None:
    git = ["git", "-C", str(RESULTS)]
    whole = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True).stdout
    if whole.strip() != "false":
        pytest.skip("this is not a checkout with its whole history")
    files = {path: json.loads(path.read_text()) for path in RESULTS.rglob("*.json")}
    named = {found["commit"]: path for path, found in files.items() if isinstance(found, dict) and found.get("commit")}
    known = subprocess.run([*git, "cat-file", "--batch-check"], input="\n".join(named), capture_output=True, text=True)
    missing = [line.split()[0] for line in known.stdout.splitlines() if line.split()[1] != "commit"]
    assert [named[commit].name for commit in missing] == []


def test_a_block_is_filled_and_the_rest_of_the_page_is_kept() -> None:
    page = generated(PAGE, Sources())
    assert "| 1,000,000 | 80 |" in page
    assert page.startswith("# Title\n\n<!-- numbers: glint-scale -->\n| pairs")
    assert page.endswith("|\n<!-- end -->\n\nText.\n")
    assert generated(page, Sources()) == page


def test_a_number_that_was_changed_by_hand_is_found(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(generated(PAGE, Sources()).replace("0.930", "0.999"))
    assert any("page.md" in problem for problem in problems([path]))


def test_a_block_that_no_page_shows_is_found(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(generated(PAGE, Sources()))
    found = problems([path])
    assert any("'serving'" in problem for problem in found)
    assert not any("'glint-scale'" in problem for problem in found)


def test_results_of_an_earlier_version_never_stand_as_current(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = next(page for page in pages() if page.name == "methods.md")
    monkeypatch.setattr(SCM, "version", 99, raising=False)
    assert any("methods.md differs" in problem for problem in problems(pages()))
    page = generated(methods.read_text(encoding="utf-8"), Sources())
    (table,) = [block for block in page.split("<!-- end -->") if "<!-- numbers: all-methods -->" in block]
    (remark,) = [line for line in table.splitlines() if line.startswith("Made with earlier code or defaults")]
    assert "SCM (" in remark


def test_the_remark_counts_the_runs_of_each_method_and_names_failed_ones() -> None:
    current = {"method_version": 99, "code_hash": None}
    made = [Run("a", method, seed=seed).to_json() for method, seed in (("scm", 0), ("scm", 1), ("cmfh", 0))]
    results = [{"status": "done", "commit": "c", "run": run, **current} for run in made]
    results[1]["method_version"] = SCM.version
    results[2]["method_version"] = CMFH.version
    assert remarks(results) == "\n\nMade with earlier code or defaults of the method: SCM (1 of 2 runs)."
    assert remarks(results[1:]) == ""
    assert remarks([], [failure(Run("a", "scm"), "no luck", 1.0)]) == "\n\nFailed: a/scm-64-s0.json."


def test_runs_that_are_missing_or_failed_are_left_out_of_tables(tmp_path: Path) -> None:
    runs = [Run("a", "scm", seed=seed) for seed in range(3)]
    write_result(tmp_path / "runs" / runs[0].path, {"format": 3, "status": "done", "run": runs[0].to_json()})
    write_result(tmp_path / "runs" / runs[1].path, failure(runs[1], "no luck", 1.0))
    sources = Sources(tmp_path)
    assert [result["run"]["seed"] for result in sources.runs([*runs, runs[0]])] == [0]
    assert [result["error"] for result in sources.failed] == ["no luck"]


def test_an_unknown_block_is_refused() -> None:
    with pytest.raises(SystemExit, match="'nothing'"):
        generated("<!-- numbers: nothing -->\n<!-- end -->", Sources())


@pytest.mark.parametrize(("text", "code"), [("0.930", 0), ("0.999", 1)])
def test_the_check_fails_when_a_page_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    path = tmp_path / "page.md"
    path.write_text(generated(PAGE, Sources()).replace("0.930", text))
    monkeypatch.setattr(numbers, "pages", lambda: [path])
    monkeypatch.setattr(numbers, "BLOCKS", {"glint-scale": tuning_tables.glint_scale})
    monkeypatch.setattr("sys.argv", ["numbers", "--check"])
    with pytest.raises(SystemExit) as ended:
        numbers.main()
    assert ended.value.code == code
    assert capsys.readouterr().out


def test_unseen_runs_are_shown_as_far_as_they_are_made(tmp_path: Path) -> None:
    grid = read_grid(GRIDS / "coco66k.yaml")
    names = ("ndcg@10", "ndcg@100", "map@all", "recall@1", "recall@5", "recall@10")
    made = [run for run in grid.block("unseen: 64 bits") if run.method in ("rmsh", "cca-itq")]
    for run in made:
        score = {"value": 0.6 if run.method == "rmsh" else 0.5, "chance": 0.1}
        scores = {d: dict.fromkeys(names, score) for d in ("i2t", "t2i")}
        result = {"format": 3, "status": "done", "run": run.to_json(), "scores": scores, "seconds": {"fit_cpu": 7.0}}
        write_result(tmp_path / "runs" / run.path, result)
    lines = tables.unseen(Sources(tmp_path)).splitlines()
    assert lines[0].startswith("| method | bits | NDCG@10, chance 0.100 |")
    assert lines[2] == "| RMSH | 64 | 0.600 / 0.600 | 0.600 / 0.600 | 0.600 / 0.600 |"
    assert [line.split(" | ")[0] for line in lines[-2:]] == ["| RMSH", "| CCA-ITQ"]


def test_runs_with_defaults_and_with_options_of_trials_are_not_mixed(tmp_path: Path) -> None:
    runs = [Run("coco66k", "nest", 256, prefixes=(64,)), Run("coco66k", "nest", 64, options={"gain": 128.0})]
    for run in runs:
        scores = {"i2t": {"ndcg@10": {"value": 0.5, "chance": 0.1}}}
        result = {"format": 3, "status": "done", "run": run.to_json(), "scores": scores}
        result |= {"prefixes": {"64": scores}} if run.prefixes else {}
        write_result(tmp_path / "runs" / run.path, result)
    groups = tables._by_length(Sources(tmp_path), runs)
    assert [*groups] == [("NEST", "256"), ("NEST", "64 of 256"), ("NEST, tuned", "64")]
    assert {len(group) for group in groups.values()} == {1}


def test_shortened_trainings_are_named_with_the_steps_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"dcmh": {"epochs": 10}, "tdh": {"epochs": 20}}
    monkeypatch.setattr(tables, "read_records", lambda: {n: {"chosen": o, "epochs": 20} for n, o in chosen.items()})
    results = [{"run": {"method": n, "options": o}, "training_pairs": 50_000} for n, o in chosen.items()]
    sentence = tables._limited(results)
    assert "CPU minutes: DCMH 10 of 20." in sentence  # 10 x 50,000 items instead of 20 x 10,000
    assert "2.5 to 2.5 times as many steps" in sentence
    assert "TDH" not in sentence


def _scored(method: str, protocol: str, ndcg: float, mean_ap: float) -> dict[str, Any]:
    names = {"ndcg@500" if protocol == "paper" else "ndcg@10": {"value": ndcg}, "map@all": {"value": mean_ap}}
    run = Run("coco66k", method, protocol=protocol).to_json()
    return {"run": run, "config": {}, "scores": dict.fromkeys(("i2t", "t2i"), names)}


def test_orders_and_rows_behind_the_baseline_without_labels_are_counted() -> None:
    values = {"cca-itq": (0.5, 0.6, 0.50), "rmsh": (0.6, 0.7, 0.51), "scm": (0.4, 0.8, 0.495), "dcmh": (0.3, 0.9, 0.48)}
    paper = {method_title(n): [_scored(n, "paper", v[0], v[1])] for n, v in values.items()}
    unseen = {method_title(n): [_scored(n, "unseen", v[2], v[1])] for n, v in values.items()}
    sentence = tables._orders(paper, unseen)
    # NDCG ranks RMSH, CCA-ITQ, SCM, DCMH; mAP DCMH, SCM, RMSH, CCA-ITQ: 1 - 6 (4 + 4 + 1 + 9) / (4 * 15)
    assert "(Spearman) of -0.80 with that by mAP@all" in sentence
    assert "of 1.00 with that by NDCG@10" in sentence
    assert "1 of 3 rows that learned from labels are at least 0.01 behind CCA-ITQ, which uses none: DCMH." in sentence
    assert tables._orders({}, {}) == ""


def test_fewer_epochs_stand_before_those_of_the_table(tmp_path: Path) -> None:
    grid = read_grid(GRIDS / "coco66k.yaml")
    shorter = grid.block("shorter training: UCH")
    assert {(run.bits, run.protocol) for run in shorter} == set(product((64, 128), ("paper", "unseen")))
    usual = [run for name in ("table 1: 64 bits", "unseen: 64 bits") for run in grid.block(name) if run.method == "uch"]
    for number, run in enumerate([*usual, *shorter]):
        result = {"format": 3, "status": "done"} | _scored("uch", run.protocol, 0.4 + number / 100, 0.6)
        result |= {"run": run.to_json(), "audit": {"image": {"mean_correlation": 0.25 + number / 4}}}
        write_result(tmp_path / "runs" / run.path, result)
    epochs = usual[0].options["epochs"]
    row = f"| UCH | 64 | 3 → {epochs} | 0.420 / 0.420 → 0.400 / 0.400 | 0.430 / 0.430 → 0.410 / 0.410 | 0.75 → 0.25 |"
    *_, last, _, worse = tuning_tables.more_steps(Sources(tmp_path)).splitlines()
    assert last == row  # and none of 128 bits, which the tables lack
    assert worse == "More than 0.01 less after more epochs: UCH at 64 bits (`paper`), UCH at 64 bits (`unseen`)."


def test_all_chosen_epochs_stand_after_those_of_the_table(tmp_path: Path) -> None:
    grid = read_grid(GRIDS / "coco66k.yaml")
    names = ("table 1: 64 bits", "unseen: 64 bits", "shorter training: 7 epochs", "longer training: 40 epochs")
    for number, run in enumerate(run for name in names for run in grid.block(name) if run.method == "ssah"):
        result = {"format": 3, "status": "done"} | _scored("ssah", run.protocol, 0.4 + number / 100, 0.6)
        result |= {"run": run.to_json(), "audit": {"image": {"mean_correlation": 0.25}}}
        write_result(tmp_path / "runs" / run.path, result)
    *_, fewer, more, _, worse = tuning_tables.more_steps(Sources(tmp_path)).splitlines()
    assert fewer.startswith("| SSAH | 64 | 7 → 13 | 0.420 / 0.420 → 0.400 / 0.400 |")
    assert more.startswith("| SSAH | 64 | 13 → 40 | 0.400 / 0.400 → 0.440 / 0.440 |")
    assert worse == "More than 0.01 less after more epochs: SSAH at 64 bits (`paper`), SSAH at 64 bits (`unseen`)."


def test_variants_of_long_codes_stand_below_those_of_the_table(tmp_path: Path) -> None:
    grid = read_grid(GRIDS / "coco66k.yaml")
    usual = next(run for run in grid.block("table 1: lengths") if (run.method, run.bits) == ("uch", 128))
    variant = grid.block("long codes: UCH")[0]
    assert (variant.bits, usual.options["alignment"], variant.options["alignment"]) == (128, 1.0, 0.1)
    for number, run in enumerate([usual, variant]):
        result = {"format": 3, "status": "done"} | _scored("uch", run.protocol, 0.4 + number / 100, 0.6)
        result |= {"run": run.to_json(), "audit": {"image": {"mean_correlation": 0.75 - number / 4}}}
        write_result(tmp_path / "runs" / run.path, result)
    assert tuning_tables.long_codes(Sources(tmp_path)).splitlines()[2:] == [
        "| UCH | 128 | 1 | 0.400 / 0.400 | 0.75 |",
        "| UCH, a tenth of the alignment | 128 | 1 | 0.410 / 0.410 | 0.50 |",
    ]


def test_a_change_between_lengths_has_the_margin_of_the_seeds(tmp_path: Path) -> None:
    """Three seeds of either length vary by 0.01: t is 2.776 with four degrees of freedom."""
    table_1 = [*read_grid(GRIDS / "coco66k.yaml").runs()]
    usual = [r for r in table_1 if (r.method, r.protocol, r.options.get("epochs"), r.tag) == ("uch", "paper", 10, "")]
    for run in usual:
        value = {64: 0.5, 128: 0.4}.get(run.bits, 0.3) + 0.01 * run.seed
        result = {"format": 3, "status": "done"} | _scored("uch", "paper", value, 0.6)
        result |= {"run": run.to_json(), "audit": {"image": {"mean_correlation": 0.5}}}
        write_result(tmp_path / "runs" / run.path, result)
    change = "-0.1000 ± 0.0227"
    sentence = tuning_tables.long_codes(Sources(tmp_path)).splitlines()[-1]
    assert sentence.endswith(f"margin of the seeds. UCH: {change} (I → T); {change} (T → I).")


def test_recall_is_left_out_where_the_database_is_coded_in_another_way() -> None:
    plain = _scored("cmfh", "unseen", 0.5, 0.6)
    plain["scores"]["i2t"]["recall@10"] = {"value": 0.25, "chance": 0.0002}
    other = {**plain, "run": {**plain["run"], "options": {"database_codes": "unified"}}}
    assert tables._recall([plain], "recall@10") == "0.250 / 0.250"
    assert tables._recall([other], "recall@10") == "–"
    assert cells.chance([plain], "recall@10") == "0.0002"  # not 0.000
    assert tables._named(("no codes: CCA, cosine", "0")) == ("no codes: CCA, cosine", "–")


@pytest.mark.parametrize(
    ("chosen", "best", "tried", "edges", "text"),
    [
        (13, 40, (20, 40), [], "`epochs` (time limit)"),
        (13, 40, (40, 80), ["alpha"], "`alpha`"),  # more epochs were tried, and were worse
        (40, 40, (20, 40), [], "none"),
        (None, None, (None,), ["own"], "`own`"),  # a method without epochs
    ],
)
def test_epochs_at_the_edge_of_the_time_limit_are_named(
    chosen: int | None, best: int | None, tried: Sequence[int | None], edges: list[str], text: str
) -> None:
    options = [{"options": {} if epochs is None else {"epochs": epochs}} for epochs in tried]
    record = {"chosen": {"epochs": chosen}, "epochs": best, "edges": edges, "tried": options}
    assert tuning_tables._edges(record) == text


def test_rows_that_lose_ndcg_with_longer_codes_are_named() -> None:
    values = {"uch": {32: 0.49, 64: 0.5, 128: 0.485}, "scm": {64: 0.4, 128: 0.395}}
    rows = {method_title(n): [_scored(n, "paper", v, 0.6) for v in of.values()] for n, of in values.items()}
    for group, of in zip(rows.values(), values.values(), strict=True):
        for result, bits in zip(group, of, strict=True):
            result["run"]["bits"] = bits
    assert tables._falls(rows).endswith("twice as long, except UCH from 64 to 128 bits.")
    assert tables._falls({"SCM": rows["SCM"]}).endswith("twice as long.")
