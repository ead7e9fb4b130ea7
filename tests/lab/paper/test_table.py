"""The formats of a table; its LaTeX is also compiled if pdflatex is installed."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.paper.results import Experiment
from lab.paper.table import Cell, Row, Table, to_csv, to_html, to_latex, to_markdown
from lab.paper.tables import make_tables

ODD = Table(
    "odd",
    r"All signs: \ & % $ # _ { } ~ ^ ± → † − – δ < > |",
    "method",
    {"I → T": ("16 bits", "64 bits"), "T → I": ("16 bits",)},
    (
        Row("a|b & <i>", (Cell("0.5 ± 0.1", bold=True, mark="†"), Cell("not run"), Cell("0.1", mark="*"))),
        Row("in the paper", (Cell("0.4"), Cell(""), Cell("0.2")), italic=True),
    ),
    ("A note: p < 5 % & more_or_less.",),
    ({"name": "a,b", "ndcg": 0.5}, {"name": "c", "seeds": 2}),
    number=1,
    align="l",
)


def test_what_has_a_meaning_in_latex_is_escaped() -> None:
    text = to_latex(ODD)
    assert r"a$|$b \& $<$i$>$" in text
    assert r"5 \% \& more\_or\_less" in text
    assert r"\textbf{0.5 $\pm$ 0.1}\textsuperscript{$\dagger$}" in text
    assert r"\textit{in the paper} & \textit{0.4} &  & \textit{0.2}" in text


def test_tables_are_ascii_and_every_line_fills_the_columns(everything: Experiment) -> None:
    for table in [ODD, *make_tables(everything)]:
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
def test_pdflatex_prints_every_table_inside_the_page(everything: Experiment, tmp_path: Path, columns: str) -> None:
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("pdflatex is not installed")
    tables = "\n".join(map(to_latex, [ODD, *make_tables(everything)]))
    document = f"\\documentclass[a4paper,{columns}]{{article}}\n\\usepackage{{graphicx}}\n\\begin{{document}}\n{tables}"
    (tmp_path / "tables.tex").write_text(document + "\\end{document}\n")
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert (tmp_path / "tables.pdf").is_file(), said
    assert not re.findall(r"^(?:Overfull|! ).*", said, flags=re.MULTILINE)


def test_markdown_has_as_many_cells_in_each_line() -> None:
    lines = [line for line in to_markdown(ODD).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in lines} == {5}
    assert "**0.5 ± 0.1**†" in lines[2]
    assert "*0.4*" in lines[3]
    assert "**" not in lines[3]


def test_csv_has_the_records_with_all_their_fields() -> None:
    rows = list(csv.DictReader(to_csv(ODD).splitlines()))
    assert rows == [{"name": "a,b", "ndcg": "0.5", "seeds": ""}, {"name": "c", "ndcg": "", "seeds": "2"}]


def test_html_escapes_names_titles_and_notes() -> None:
    page = to_html(ODD)
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
    assert "&lt; &gt; |</caption>" in page
    assert "p &lt; 5 %" in page
    assert page.count("<tr") == 4
    assert "<b>0.5 ± 0.1</b><sup>†</sup>" in page
