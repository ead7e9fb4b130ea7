"""The paper's Table 1: all methods at all code lengths, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.paper.lineup import Entry, Lineup
from lab.paper.names import COMPARED, DIRECTION_TITLES
from lab.paper.outcomes import DIRECTIONS, NDCG, Outcome, done
from lab.paper.published import paper_score
from lab.paper.significance import Comparison, compare
from lab.paper.tables.cells import NOT_RUN, mark, paper_cell, record, score_cell, table_notes
from lab.paper.tables.table import Cell, Row, Table

__all__ = ["bold_words", "chance_row", "comparison_table", "entries_of"]


def comparison_table(lineup: Lineup) -> Table | None:
    """Table 1: methods, code lengths and both directions; the best of the eight is bold; None without runs."""
    if not lineup.bits:
        return None
    places = [(direction, bits) for direction in DIRECTIONS for bits in lineup.bits]
    tests = {place: _against_second(lineup, *place) for place in places}
    rows: list[Row] = [chance_row(lineup, places)]
    records: list[dict[str, Any]] = []
    for entry in entries_of(lineup):
        cells = []
        for direction, bits in places:
            best, test = tests[direction, bits]
            group = lineup.cell(entry, bits)
            sign = mark(test) if entry == best else ""
            cells.append(score_cell(group, direction, bold=entry == best, sign=sign))
            paper = _paper(lineup.dataset, entry, direction, bits)
            shown = test if entry == best else None
            records.append(record(group, direction, name=entry.title, bits=bits, paper=paper, test=shown))
        rows += [Row(entry.title, tuple(cells)), *_paper_row(lineup.dataset, entry, places)]
    return Table(
        f"table1-{lineup.dataset}",
        f"NDCG@500 of all methods on {lineup.dataset}",
        "method",
        {title: tuple(f"{bits} bits" for bits in lineup.bits) for title in DIRECTION_TITLES.values()},
        tuple(rows),
        table_notes(lineup.dataset, _all(lineup), f"{bold_words(lineup)}; against the second best of them"),
        tuple(records),
        number=1,
        align="l",
    )


def bold_words(lineup: Lineup) -> str:
    """What a bold score is the best of."""
    cells = (lineup.cell(Entry(name), bits) for name in COMPARED for bits in lineup.bits)
    those = "the eight methods" if all(map(done, cells)) else "those of the eight methods that have scores"
    return f"Bold: the best of {those}"


def entries_of(lineup: Lineup) -> list[Entry]:
    """The eight methods in the paper's order, run or not; then other methods and presets; then what has no codes."""
    eight = [Entry(method) for method in COMPARED]
    return eight + sorted((e for e in lineup.runs if e not in eight), key=lambda e: (lineup.is_reference(e), e))


def _against_second(lineup: Lineup, direction: str, bits: int) -> tuple[Entry | None, Comparison | None]:
    """The best of the eight, and how sure it is that it is better than the next; none where there is no next."""
    ranked = lineup.ranked(bits, direction, metric=NDCG)
    if len(ranked) < 2:
        return None, None
    first, second = (done(lineup.cell(entry, bits)) for entry in ranked[:2])
    return ranked[0], compare(first, second, direction)


def chance_row(lineup: Lineup, places: Sequence[tuple[str, int]], *, metric: str = NDCG) -> Row:
    """What a random ranking scores at each place of a table."""
    scored = done(_all(lineup))
    cells = tuple(Cell(f"{scored[0].chance(direction, metric):.4f}" if scored else NOT_RUN) for direction, _ in places)
    return Row("a random ranking", cells)


def _paper(dataset: str, entry: Entry, direction: str, bits: int) -> float | None:
    if entry.preset:
        return None
    return paper_score(1, dataset, direction=direction, method=entry.title, bits=bits)


def _paper_row(dataset: str, entry: Entry, places: Sequence[tuple[str, int]]) -> list[Row]:
    scores = [_paper(dataset, entry, direction, bits) for direction, bits in places]
    known = any(score is not None for score in scores)
    return [Row(f"{entry.title} in the paper", tuple(map(paper_cell, scores)), quiet=True)] if known else []


def _all(lineup: Lineup) -> list[Outcome]:
    return [outcome for lengths in lineup.runs.values() for group in lengths.values() for outcome in group]
