from __future__ import annotations

import csv

from lab.paper.tables.table import Cell, Row, Table, to_csv, to_html, to_markdown

TABLE = Table(
    "scores",
    "Scores <of> all",
    "method",
    {"I → T": ("16 bits", "64 bits"), "T → I": ("16 bits",)},
    (
        Row("a|b & <i>", (Cell("0.5 ± 0.1", bold=True, mark="†"), Cell("not run"), Cell("0.1", mark="*"))),
        Row("in the paper", (Cell("0.4"), Cell(""), Cell("0.2")), quiet=True),
    ),
    ("A note: p < 5 % & more_or_less.",),
    ({"name": "a,b", "ndcg": 0.5}, {"name": "c", "seeds": 2}),
)


def test_markdown_has_as_many_cells_in_each_line() -> None:
    lines = [line for line in to_markdown(TABLE).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in lines} == {5}
    assert "**0.5 ± 0.1**†" in lines[2]
    assert "*0.4*" in lines[3]
    assert "**" not in lines[3]


def test_csv_has_the_records_with_all_their_fields() -> None:
    rows = list(csv.DictReader(to_csv(TABLE).splitlines()))
    assert rows == [{"name": "a,b", "ndcg": "0.5", "seeds": ""}, {"name": "c", "ndcg": "", "seeds": "2"}]


def test_html_escapes_names_titles_and_notes() -> None:
    page = to_html(TABLE)
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
    assert "Scores &lt;of&gt; all" in page
    assert "p &lt; 5 %" in page
    assert page.count("<tr") == 4
    assert "<b>0.5 ± 0.1</b><sup>†</sup>" in page
