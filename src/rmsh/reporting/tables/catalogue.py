"""All tables of some results, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rmsh.files import write_text
from rmsh.reporting.lineup import line_up
from rmsh.reporting.outcomes import Outcome, datasets
from rmsh.reporting.tables.ablation import ablation_table
from rmsh.reporting.tables.codes import code_table
from rmsh.reporting.tables.comparison import comparison_table
from rmsh.reporting.tables.costs import cost_table
from rmsh.reporting.tables.latex import to_latex
from rmsh.reporting.tables.precision import precision_table
from rmsh.reporting.tables.table import Table, to_csv, to_html, to_markdown

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
