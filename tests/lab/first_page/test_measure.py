"""The command: it writes sheets, takes grades, then scores and stores."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lab.__main__ import main
from lab.first_page import judged, measure
from lab.first_page.rankings import fts5

QUERIES = [{"query": "cat", "kind": "object", "part": "dev"}, {"query": "dog", "kind": "object", "part": "test"}]
CAPTIONS = {"1": "a cat", "2": "a cat and a dog", "3": "a dog"}


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A small data set and judged set; what the command stores is put into the dictionary."""
    (tmp_path / "pairs.tsv").write_text(
        "id\tsplit\tcaption\n" + "".join(f"{i}\tquery\t{c}\n" for i, c in CAPTIONS.items())
    )
    with tarfile.open(tmp_path / "images.tar", "w") as archive:
        for item in CAPTIONS:
            Image.new("RGB", (192, 192)).save(content := io.BytesIO(), "JPEG")
            member = tarfile.TarInfo(f"{int(item):012}.jpg")
            member.size = content.tell()
            archive.addfile(member, io.BytesIO(content.getvalue()))
    (tmp_path / "queries.json").write_text(json.dumps(QUERIES))
    (tmp_path / "judgements.json").write_text(json.dumps({"cat": {"1": 2, "2": 2}, "dog": {"2": 2}}))
    monkeypatch.setattr(measure, "coco66k_root", lambda: str(tmp_path))
    monkeypatch.setattr(measure, "cosine", fts5)  # without weights
    monkeypatch.setattr(measure, "read_queries", lambda part: judged.read_queries(part, path=tmp_path / "queries.json"))
    monkeypatch.setattr(measure, "read_judgements", lambda: judged.read_judgements(tmp_path / "judgements.json"))
    monkeypatch.setattr(
        measure, "write_judgements", lambda grades: judged.write_judgements(grades, tmp_path / "judgements.json")
    )
    results: dict[str, Any] = {}
    monkeypatch.setattr(measure, "write_measurement", results.__setitem__)
    return results


def test_unjudged_items_are_refused_then_judged_from_sheets_then_scored(tmp_path: Path, stored: dict[str, Any]) -> None:
    assert main(["first-page"]) != 0
    assert stored == {}
    assert main(["first-page", "--sheets", str(tmp_path / "sheets")]) == 0
    todo = tmp_path / "sheets" / "todo.txt"
    assert todo.read_text() == "dog | 3:\n"
    todo.write_text("dog | 3: 0\n")
    assert main(["first-page", "--grades", str(todo)]) == 0
    overall = {row["ranking"]: row for row in stored["first_page/baselines"]["rows"] if row["kind"] == "all"}
    assert overall["best order"]["ndcg@10"]["value"] == 1.0
    assert overall["fts5"]["precision@10"]["value"] == 0.15


def test_a_ranking_from_a_file_is_scored_beside_the_baselines(
    tmp_path: Path, stored: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ranking = tmp_path / "mine.json"
    ranking.write_text(json.dumps({"cat": ["000000000002"], "dog": []}))
    assert main(["first-page", str(ranking), "--name", "mine", "--part", "dev"]) == 0
    row = next(row for row in stored["first_page/mine"]["rows"] if row["ranking"] == "mine")
    assert row["precision@10"]["value"] == 0.1
    assert "mine" in capsys.readouterr().out
