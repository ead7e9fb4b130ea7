"""What the codes of each method are like: how many differ, how even their bits are, how many bits say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lab.paper.outcomes import Outcome, done
from lab.paper.tables.cells import absence
from lab.paper.tables.comparison import entries_of
from lab.paper.tables.table import Cell, Row, Table

if TYPE_CHECKING:
    from lab.paper.lineup import Lineup

__all__ = ["code_table"]

_COLUMNS = {
    "distinct": ("distinct codes", "{:,.0f}"),
    "rarer": ("rarer value of a bit, %", "{:.0f}"),
    "constant": ("constant bits, %", "{:.0f}"),
}
_NOTE = (
    "Of the searched codes, those of the modality that is worse, the mean over seeds: how many differ; how often a bit "
    "has the rarer of its two values, on average over the bits (50 % is even); and bits with one value on more than "
    "98 % of the items."
)


def code_table(lineup: Lineup) -> Table | None:
    """Codes and bits at all lengths, reference lines left out, which have none; None without runs."""
    entries = [entry for entry in entries_of(lineup) if not lineup.is_reference(entry)]
    groups = {(entry.title, bits): lineup.cell(entry, bits) for entry in entries for bits in lineup.bits}
    facts = {place: _facts(group) for place, group in groups.items()}
    if not any(facts.values()):
        return None
    shown = {place: _shown(facts[place], group) for place, group in groups.items()}
    rows = tuple(
        Row(entry.title, tuple(shown[entry.title, bits][column] for column in _COLUMNS for bits in lineup.bits))
        for entry in entries
    )
    return Table(
        f"codes-{lineup.dataset}",
        f"The codes of all methods on {lineup.dataset}",
        "method",
        {title: tuple(f"{bits} bits" for bits in lineup.bits) for title, _ in _COLUMNS.values()},
        rows,
        (_NOTE,),
        tuple({"name": name, "bits": bits, **found} for (name, bits), found in facts.items()),
    )


def _shown(facts: dict[str, float], outcomes: Sequence[Outcome]) -> dict[str, Cell]:
    """A cell a column; why there is none where nothing is known."""
    if not facts:
        return {column: Cell(absence(outcomes)) for column in _COLUMNS}
    return {column: Cell(form.format(facts[column])) for column, (_, form) in _COLUMNS.items()}


def _facts(outcomes: Sequence[Outcome]) -> dict[str, float]:
    audited = [list(outcome.result["audit"].values()) for outcome in done(outcomes) if outcome.result.get("audit")]
    if not audited:
        return {}
    return {
        "distinct": fmean(min(audit["distinct"] for audit in audits) for audits in audited),
        "rarer": round(fmean(min(_rarer(audit) for audit in audits) for audits in audited), 2),
        "constant": round(fmean(max(_constant(audit) for audit in audits) for audits in audited), 2),
    }


def _rarer(audit: dict[str, Any]) -> float:
    return 100 * fmean(min(share, 1 - share) for share in audit["ones"])


def _constant(audit: dict[str, Any]) -> float:
    return 100 * (len(audit["dead"]) + len(audit["nearly_constant"])) / float(audit["bits"])
