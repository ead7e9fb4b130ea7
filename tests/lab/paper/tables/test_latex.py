"""The LaTeX of tables: its structure always, and what pdflatex makes of it where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.paper.outcomes import Outcome
from lab.paper.tables.catalogue import make_tables
from lab.paper.tables.latex import to_latex
from lab.paper.tables.table import Cell, Row, Table

ODD = Table(
    "odd",
    r"All signs: \ & % $ # _ { } ~ ^ ± → † − – δ < > |",
    "method",
    {"I → T": ("16 bits", "64 bits"), "T → I": ("16 bits",)},
    (
        Row("a|b & <i>", (Cell("0.5 ± 0.1", bold=True, mark="†"), Cell("not run"), Cell("0.1", mark="*"))),
        Row("in the paper", (Cell("0.4"), Cell(""), Cell("0.2")), quiet=True),
    ),
    ("A note: p < 5 % & more_or_less.",),
    number=1,
    align="l",
)


def test_what_has_a_meaning_in_latex_is_escaped() -> None:
    text = to_latex(ODD)
    assert r"a$|$b \& $<$i$>$" in text
    assert r"5 \% \& more\_or\_less" in text
    assert r"\textbf{0.5 $\pm$ 0.1}\textsuperscript{$\dagger$}" in text
    assert r"\textit{in the paper} & \textit{0.4} &  & \textit{0.2}" in text


def test_tables_are_ascii_and_every_line_fills_the_columns(all_outcomes: list[Outcome]) -> None:
    for table in [ODD, *make_tables(all_outcomes)["coco66k"]]:
        text = to_latex(table)
        assert text.isascii()
        assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
        over, *lines = [line.replace(r"\&", "") for line in text.splitlines() if line.endswith(r"\\")]
        assert over.count("&") == len(table.groups)
        assert {line.count("&") for line in lines} == {len(table.columns)}
        assert len(lines) == len(table.rows) + 1
        assert re.findall(r"\\(?:begin|end){([^}]*)}", text) == ["table*", "tabular", "tabular", "table*"]


def test_latex_counts_tables_itself_and_knows_each_by_its_name() -> None:
    text = to_latex(ODD)
    assert "Table 1" not in text
    assert r"\label{tab:odd}" in text


@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
def test_pdflatex_prints_every_table_inside_the_page(all_outcomes: list[Outcome], tmp_path: Path, columns: str) -> None:
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("pdflatex is not installed, so that no table is printed")
    tables = "\n".join(map(to_latex, [ODD, *make_tables(all_outcomes)["coco66k"]]))
    document = f"\\documentclass[a4paper,{columns}]{{article}}\n\\usepackage{{graphicx}}\n\\begin{{document}}\n{tables}"
    (tmp_path / "tables.tex").write_text(document + "\\end{document}\n")
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert (tmp_path / "tables.pdf").is_file(), said
    assert not re.findall(r"^(?:Overfull|! ).*", said, flags=re.MULTILINE)
