"""mAP@all of all methods, which the paper does not show: it asks whether a label is shared, not how many are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.paper.names import DIRECTION_TITLES
from lab.paper.outcomes import DIRECTIONS, MAP
from lab.paper.tables.cells import record, score_cell
from lab.paper.tables.comparison import bold_words, chance_row, entries_of
from lab.paper.tables.table import Row, Table

if TYPE_CHECKING:
    from lab.paper.lineup import Lineup

__all__ = ["precision_table"]


def precision_table(lineup: Lineup) -> Table | None:
    """Methods, code lengths and both directions; the best of the eight is bold; None without runs."""
    if not lineup.bits:
        return None
    places = [(direction, bits) for direction in DIRECTIONS for bits in lineup.bits]
    best = {(direction, bits): lineup.ranked(bits, direction, metric=MAP)[:1] for direction, bits in places}
    rows, records = [chance_row(lineup, places, metric=MAP)], []
    for entry in entries_of(lineup):
        cells = []
        for direction, bits in places:
            group = lineup.cell(entry, bits)
            cells.append(score_cell(group, direction, metric=MAP, bold=entry in best[direction, bits]))
            records.append(record(group, direction, name=entry.title, bits=bits, paper=None, test=None))
        rows.append(Row(entry.title, tuple(cells)))
    return Table(
        f"map-{lineup.dataset}",
        f"mAP@all of all methods on {lineup.dataset}",
        "method",
        {title: tuple(f"{bits} bits" for bits in lineup.bits) for title in DIRECTION_TITLES.values()},
        tuple(rows),
        (f"Mean and standard deviation over seeds where there are several. {bold_words(lineup)}.",),
        tuple(records),
        align="l",
    )
