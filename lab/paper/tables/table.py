"""A table of results as a value, and its forms in Markdown, CSV and HTML; its LaTeX is in latex.py."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

__all__ = ["Cell", "Row", "Table", "to_csv", "to_html", "to_markdown"]


@dataclass(frozen=True)
class Cell:
    """One number or word.

    Args:
        text: what is shown.
        bold: the best of its column.
        mark: a sign behind it that a note explains.
    """

    text: str
    bold: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Row:
    """A name and its cells; a ``quiet`` row is the paper's, not ours."""

    name: str
    cells: tuple[Cell, ...]
    quiet: bool = False


@dataclass(frozen=True)
class Table:
    """A table with groups of columns.

    Args:
        name: of its files.
        title: above it, without its number.
        corner: above the names of the rows.
        groups: title -> its columns, in order.
        rows: from the top down.
        notes: sentences below it.
        records: the same numbers in full, a record a cell, for the CSV file.
        number: that of the paper's table it repeats, None where it is ours.
        align: "l" where cells begin with numbers of the same length and may go on, "r" for plain numbers.
    """

    name: str
    title: str
    corner: str
    groups: Mapping[str, tuple[str, ...]]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    records: tuple[Mapping[str, Any], ...] = ()
    number: int | None = None
    align: Literal["l", "r"] = "r"

    @property
    def heading(self) -> str:
        """The title with the number of the paper's table; LaTeX, which counts by itself, takes the title alone.

        Example:
            >>> Table("t", "Scores", "method", {}, (), number=2).heading
            'Table 2. Scores'
        """
        return self.title if self.number is None else f"Table {self.number}. {self.title}"

    @property
    def columns(self) -> list[str]:
        """All columns, each with its group."""
        return [f"{group} {column}" for group, columns in self.groups.items() for column in columns]


def to_markdown(table: Table) -> str:
    r"""A heading, the table, and its notes.

    Example:
        >>> rows = (Row("RMSH", (Cell("0.6", bold=True, mark="*"),)), Row("paper", (Cell("0.4"),), quiet=True))
        >>> print(to_markdown(Table("t", "Scores", "method", {"I → T": ("64",)}, rows, ("A note.",))))
        ## Scores
        <BLANKLINE>
        | method | I → T 64 |
        |---|---:|
        | RMSH | **0.6**\* |
        | *paper* | *0.4* |
        <BLANKLINE>
        A note.
        <BLANKLINE>
    """
    lines = [f"## {table.heading}", "", f"| {' | '.join([table.corner, *table.columns])} |"]
    lines.append("|---|" + ("---|" if table.align == "l" else "---:|") * len(table.columns))
    for row in table.rows:
        cells = [_markdown_cell(cell, row.quiet) for cell in row.cells]
        name = _barless(row.name)
        lines.append(f"| {' | '.join([f'*{name}*' if row.quiet else name, *cells])} |")
    return "\n".join([*lines, "", *(f"{_starless(note)}\n" for note in table.notes)])


def _markdown_cell(cell: Cell, quiet: bool) -> str:
    sign = "**" if cell.bold else "*" if quiet and cell.text else ""
    return f"{sign}{_barless(cell.text)}{sign}{_starless(cell.mark)}"


def _barless(text: str) -> str:
    return text.replace("|", "\\|")


def _starless(text: str) -> str:
    return text.replace("*", "\\*")


def to_csv(table: Table) -> str:
    """The records, a line each, with the names of their fields above."""
    file = io.StringIO()
    names = list(dict.fromkeys(name for record in table.records for name in record))
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.records)
    return file.getvalue()


_ALIGNED = {"l": "from-left", "r": "from-right"}


def to_html(table: Table) -> str:
    """A ``<table>`` with a caption, and its notes; everything is escaped."""
    over = "".join(f'<th colspan="{len(columns)}">{escape(group)}</th>' for group, columns in table.groups.items())
    under = "".join(f"<th>{escape(column)}</th>" for columns in table.groups.values() for column in columns)
    body = "".join(
        f'<tr class="{"quiet" if row.quiet else "ours"}"><th scope="row">{escape(row.name)}</th>'
        + "".join(f"<td>{_html_cell(cell)}</td>" for cell in row.cells)
        + "</tr>\n"
        for row in table.rows
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>\n' for note in table.notes)
    return (
        f'<div class="wide"><table class="{_ALIGNED[table.align]}">\n<caption>{escape(table.heading)}</caption>\n'
        f'<thead><tr><th rowspan="2">{escape(table.corner)}</th>{over}</tr>\n<tr>{under}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n{notes}"
    )


def _html_cell(cell: Cell) -> str:
    text = escape(cell.text)
    mark = f"<sup>{escape(cell.mark)}</sup>" if cell.mark else ""
    return (f"<b>{text}</b>" if cell.bold else text) + mark
