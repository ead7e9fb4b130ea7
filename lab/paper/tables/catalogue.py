"""All tables of some results, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.paper.lineup import line_up
from lab.paper.outcomes import Outcome, datasets
from lab.paper.tables.ablation import ablation_table
from lab.paper.tables.codes import code_table
from lab.paper.tables.comparison import comparison_table
from lab.paper.tables.costs import cost_table
from lab.paper.tables.latex import to_latex
from lab.paper.tables.precision import precision_table
from lab.paper.tables.table import Table, to_csv, to_html, to_markdown
from rmsh.core.files import write_text

__all__ = ["make_tables", "write_table"]


def make_tables(outcomes: Sequence[Outcome]) -> dict[str, list[Table]]:
    """For each dataset the tables that its results have something for."""
    tables: dict[str, list[Table]] = {}
    for dataset in datasets(outcomes):
        lineup = line_up(outcomes, dataset)
        made = [comparison_table(lineup), ablation_table(outcomes, dataset)]
        made += [precision_table(lineup), cost_table(lineup), code_table(lineup)]
        tables[dataset] = [table for table in made if table is not None]
    return tables


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write a table in four forms into a folder, and return the files."""
    forms = {"md": to_markdown, "csv": to_csv, "tex": to_latex, "html": to_html}
    paths = [folder / f"{table.name}.{suffix}" for suffix in forms]
    for path, form in zip(paths, forms.values(), strict=True):
        write_text(path, form(table))
    return paths
