"""`rmsh data`: what the card prints, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmsh.cli.main import run

SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "pairs_v1"


def test_the_card_of_prepared_pairs_has_the_numbers_of_its_split(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "card", str(SAMPLE)]) == 0
    out, err = capsys.readouterr()
    assert "mirflickr25k: 4 items, 3 with image, 4 with text, 3 labelled, 3 database, 1 query, 2 train" in out
    assert "2 classes" in out
    assert "split 'tiny', seed 3" in err


def test_any_data_has_a_card_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "card", "generated:50", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    card = json.loads(out)["card"]
    assert (card["classes"], card["counts"]["query"], err) == (12, 5, "")
