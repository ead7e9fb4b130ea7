"""Tables as LaTeX prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsh.reporting.tables.table import Row, Table

__all__ = ["to_latex"]


def to_latex(table: Table) -> str:
    """A ``table*`` with the rules of the package booktabs, which is all it needs."""
    total = len(table.columns)
    over = " & ".join(
        f"\\multicolumn{{{len(columns)}}}{{c}}{{{_tex(group)}}}" for group, columns in table.groups.items()
    )
    under = " & ".join(_tex(column) for columns in table.groups.values() for column in columns)
    lines = ["\\begin{table*}", f"\\caption{{{_tex(table.title)}}}"]
    lines += [
        f"\\begin{{tabular}}{{l{'r' * total}}}",
        "\\toprule",
        f" & {over} \\\\",
        f"{_tex(table.corner)} & {under} \\\\",
    ]
    notes = f"\\par\\footnotesize {_tex(' '.join(table.notes))}"
    lines += ["\\midrule", *(f"{_tex_row(row)} \\\\" for row in table.rows)]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "", notes, "\\end{table*}", ""])


def _tex_row(row: Row) -> str:
    cells = []
    for cell in row.cells:
        text = f"\\textbf{{{_tex(cell.text)}}}" if cell.bold else _tex(cell.text)
        cells.append(
            (f"\\textit{{{text}}}" if row.quiet and text else text) + (f"$^{{{_tex(cell.mark)}}}$" if cell.mark else "")
        )
    return " & ".join([f"\\textit{{{_tex(row.name)}}}" if row.quiet else _tex(row.name), *cells])


_TEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "→": r"$\to$",
    "†": r"\dag{}",
    "−": "--",
    "δ": r"$\delta$",
    "<": "$<$",
    ">": "$>$",
    "|": r"$|$",
}


def _tex(text: str) -> str:
    r"""Text as LaTeX writes it.

    Example:
        >>> print(_tex("I → T, 5 %"))
        I $\to$ T, 5 \%
    """
    return "".join(_TEX.get(sign, sign) for sign in text)
