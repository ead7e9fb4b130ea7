"""The paper's Table 2: RMSH without one of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.paper.lineup import ABLATIONS, line_up_ablation
from lab.paper.names import DIRECTION_TITLES
from lab.paper.outcomes import DIRECTIONS, Outcome, done, mean_score
from lab.paper.published import paper_score
from lab.paper.significance import compare
from lab.paper.tables.cells import mark, paper_cell, record, score_cell, setting_words, table_notes
from lab.paper.tables.table import Row, Table

__all__ = ["ablation_table"]


def ablation_table(outcomes: Iterable[Outcome], dataset: str) -> Table | None:
    """Table 2: RMSH without its triplet loss, its classification and its pseudo-codes; None without such runs."""
    lengths = line_up_ablation(outcomes, dataset)
    if not lengths:
        return None
    places = [(direction, bits) for direction in DIRECTIONS for bits in lengths]
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for variant in (*ABLATIONS, "RMSH"):
        cells = []
        for direction, bits in places:
            group, whole = lengths[bits].get(variant, []), lengths[bits].get("RMSH", [])
            test = None if variant == "RMSH" else compare(done(whole), done(group), direction)
            best = variant == _best(lengths[bits], direction)
            cells.append(score_cell(group, direction, bold=best, sign=mark(test)))
            paper = paper_score(2, dataset, direction=direction, method=variant, bits=bits)
            records.append(record(group, direction, name=variant, bits=bits, paper=paper, test=test))
        rows += [Row(variant, tuple(cells)), *_paper_variant(dataset, variant, places)]
    return Table(
        f"table2-{dataset}",
        f"NDCG@500 of RMSH without one of its parts on {dataset}",
        "variant",
        {title: tuple(f"{bits} bits" for bits in lengths) for title in DIRECTION_TITLES.values()},
        tuple(rows),
        (
            "RMSH-T has no triplet loss, RMSH-C no classification, RMSH-P no pseudo-codes.",
            *(_setting(bits, variants) for bits, variants in lengths.items()),
            *table_notes(dataset, _flat(lengths), "Against the whole of RMSH"),
        ),
        tuple(records),
        number=2,
        align="l",
    )


def _best(variants: Mapping[str, Sequence[Outcome]], direction: str) -> str | None:
    means = {name: mean_score(scored, direction) for name, group in variants.items() if (scored := done(group))}
    return max(means, key=lambda name: means[name], default=None)


def _paper_variant(dataset: str, variant: str, places: Sequence[tuple[str, int]]) -> list[Row]:
    scores = [paper_score(2, dataset, direction=direction, method=variant, bits=bits) for direction, bits in places]
    known = any(score is not None for score in scores)
    return [Row(f"{variant} in the paper", tuple(map(paper_cell, scores)), quiet=True)] if known else []


def _setting(bits: int, variants: Mapping[str, Sequence[Outcome]]) -> str:
    run = next(iter(variants.values()))[0].run
    return f"{bits} bits: {setting_words(run)}."


def _flat(lengths: Mapping[int, Mapping[str, Sequence[Outcome]]]) -> list[Outcome]:
    return [outcome for variants in lengths.values() for group in variants.values() for outcome in group]
