"""Tables as LaTeX prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.paper.tables.table import Cell, Row, Table

__all__ = ["to_latex"]

# Rules of the package booktabs where the document has it, plain ones elsewhere.
_RULES = "".join(f"\\providecommand{{\\{rule}rule}}{{\\hline}}" for rule in ("top", "mid", "bottom"))
# As large as it is, or as wide as the text.
_FITTED = r"\ifdim\wd0>\textwidth\resizebox{\textwidth}{!}{\usebox0}\else\usebox0\fi"


def to_latex(table: Table) -> str:
    """A ``table*`` that is made smaller where it is wider than the page; it needs the package graphicx."""
    return "\n".join(
        [
            "% In the preamble: \\usepackage{graphicx}, and \\usepackage{booktabs} for finer rules.",
            _RULES,
            "\\begin{table*}",
            "\\centering",
            f"\\caption{{{_tex(table.title)}}}",
            f"\\label{{tab:{table.name}}}",
            "\\footnotesize",
            "\\setlength{\\tabcolsep}{3pt}",
            "",
            "\\smallskip",
            f"\\sbox0{{{_tabular(table)}}}",
            _FITTED,
            "",
            f"\\medskip\\parbox{{\\textwidth}}{{{_tex(' '.join(table.notes))}}}",
            "\\end{table*}",
            "",
        ]
    )


def _tabular(table: Table) -> str:
    over = " & ".join(
        f"\\multicolumn{{{len(columns)}}}{{{table.align}}}{{{_tex(group)}}}" for group, columns in table.groups.items()
    )
    under = " & ".join(_tex(column) for columns in table.groups.values() for column in columns)
    lines = [f"\\begin{{tabular}}{{@{{}}l{table.align * len(table.columns)}@{{}}}}", "\\toprule"]
    lines += [f" & {over} \\\\", f"{_tex(table.corner)} & {under} \\\\", "\\midrule"]
    lines += [f"{_tex_row(row)} \\\\" for row in table.rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _tex_row(row: Row) -> str:
    name = _tex(row.name)
    cells = [_tex_cell(cell, row.quiet) for cell in row.cells]
    return " & ".join([f"\\textit{{{name}}}" if row.quiet else name, *cells])


def _tex_cell(cell: Cell, quiet: bool) -> str:
    font = "\\textbf" if cell.bold else "\\textit" if quiet and cell.text else ""
    text = f"{font}{{{_tex(cell.text)}}}" if font else _tex(cell.text)
    return text + (f"\\textsuperscript{{{_tex(cell.mark)}}}" if cell.mark else "")


_TEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "→": r"$\to$",
    "†": r"$\dagger$",  # that of text is a bitmap in the usual fonts
    "−": "$-$",
    "–": "--",
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
