"""A table as a value, and its files: Markdown, LaTeX and HTML from templates, CSV with the numbers in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2
import pandas as pd
from markupsafe import Markup

from rmsh.core.files import write_text

_TEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "→": r"$\to$",
    "†": r"$\dagger$",  # the text symbol is a bitmap in the usual fonts
    "−": "$-$",
    "–": "--",
    "δ": r"$\delta$",
    "<": "$<$",
    ">": "$>$",
    "|": r"$|$",
}


@dataclass(frozen=True)
class Cell:
    """A number or a word; ``mark`` is a sign after it that a note explains."""

    text: str
    bold: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Row:
    """A name and its cells; rows with the paper's own numbers are in italics."""

    name: str
    cells: tuple[Cell, ...]
    italic: bool = False


@dataclass(frozen=True)
class Table:
    """A table with groups of columns.

    Args:
        name: of its files.
        title: shown above it, without a number.
        corner: heading of the row names.
        groups: title -> its columns, in order.
        rows: from top to bottom.
        notes: sentences below it.
        records: the same numbers in full, one record per cell, for the CSV file.
        number: of the paper's table that it reproduces, None for our own tables.
        align: "l" for scores with a deviation or a mark, "r" for plain numbers.
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
        """The title with the number of the paper's table; LaTeX numbers tables itself.

        Example:
            >>> Table("t", "Scores", "method", {}, (), number=2).heading
            'Table 2. Scores'
        """
        return self.title if self.number is None else f"Table {self.number}. {self.title}"

    @property
    def columns(self) -> list[str]:
        """All columns, each with its group."""
        return [f"{group} {column}" for group, columns in self.groups.items() for column in columns]


def tex(text: str) -> str:
    r"""Text with the characters escaped that mean something in LaTeX.

    Example:
        >>> print(tex("I → T, 5 %"))
        I $\to$ T, 5 \%
    """
    return "".join(_TEX.get(sign, sign) for sign in text)


def markdown_text(text: str) -> str:
    r"""Text with bars and stars escaped.

    Example:
        >>> print(markdown_text("a|b*"))
        a\|b\*
    """
    return text.replace("|", "\\|").replace("*", "\\*")


_LOADER = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
HTML = jinja2.Environment(loader=_LOADER, autoescape=True, trim_blocks=True, lstrip_blocks=True)
_MARKDOWN = jinja2.Environment(  # noqa: S701  # not HTML
    loader=_LOADER, trim_blocks=True, lstrip_blocks=True
)
_MARKDOWN.filters["text"] = markdown_text
# Braces belong to LaTeX, so its template has other delimiters.
_LATEX = jinja2.Environment(  # noqa: S701  # not HTML
    loader=_LOADER,
    trim_blocks=True,
    lstrip_blocks=True,
    block_start_string="<%",
    block_end_string="%>",
    variable_start_string="<<",
    variable_end_string=">>",
    comment_start_string="<#",
    comment_end_string="#>",
)
_LATEX.filters["tex"] = tex


def to_markdown(table: Table) -> str:
    """A heading, the table, and its notes."""
    return _MARKDOWN.get_template("table.md").render(table=table)


def to_latex(table: Table) -> str:
    """A ``table*`` that is scaled down if it is wider than the page; it requires the package graphicx."""
    return _LATEX.get_template("table.tex").render(table=table)


def to_html(table: Table) -> Markup:
    """A ``<table>`` with a caption, and its notes."""
    return Markup(HTML.get_template("table.html").render(table=table))  # noqa: S704  # the template escapes


def to_csv(table: Table) -> str:
    """The records, one per line, below the names of their fields."""
    return str(pd.DataFrame(table.records).convert_dtypes().to_csv(index=False, lineterminator="\n"))


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write a table in four formats into a folder, and return the files."""
    formats = {"md": to_markdown, "csv": to_csv, "tex": to_latex, "html": to_html}
    paths = []
    for suffix, render in formats.items():
        paths.append(folder / f"{table.name}.{suffix}")
        write_text(paths[-1], render(table))
    return paths
