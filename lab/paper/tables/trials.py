"""The trials of all methods on validation, as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["trials_markdown"]


def trials_markdown(table: Mapping[str, Any]) -> str:
    """The table for people, the chosen trial of each method in bold."""
    settings = table["settings"]
    lines = [
        "# Trials",
        "",
        f"{table['what'][0].upper()}{table['what'][1:]}. {settings['dataset']}, {settings['bits']} bits, "
        f"{settings['train']:,} training pairs; a constant bit is the same on more than 98 % of the items; "
        "time is of one processor.",
        "",
        f"| method | options | NDCG@{settings['k']} I→T / T→I | mAP@all I→T / T→I | constant bits | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for method, tried in table["methods"].items():
        lines += [f"| {method} | {_cells(row)} |" for row in tried]
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, Any]) -> str:
    options = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in row["options"].items()
    )
    if "error" in row:
        return f"{options or 'defaults'} | failed: {row['error']} | | |"
    scores = [" / ".join(f"{value:.4f}" for value in row[measure].values()) for measure in ("ndcg", "map")]
    first = f"**{scores[0]}**" if row["chosen"] else scores[0]
    return f"{options or 'defaults'} | {first} | {scores[1]} | {row['constant_bits']} | {row['cpu_seconds']:.0f}"
