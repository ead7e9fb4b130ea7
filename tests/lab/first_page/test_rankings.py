"""Baseline rankings, and rankings read from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.first_page.judged import read_judgements, read_queries, unjudged
from lab.first_page.rankings import cosine, fts5, label_match, read_captions, read_ranking
from rmsh.core.errors import DataError

CAPTIONS = {"1": "Two dogs run on grass", "2": "A cat on a sofa", "3": "A dog and another dog", "4": "A train"}


def test_fts5_finds_stems_and_ignores_stop_words() -> None:
    ranked = fts5(CAPTIONS, ["a dog", "the", "!?", "running cats"])
    assert ranked["a dog"] == ["3", "1"]
    assert ranked["the"] == ranked["!?"] == []
    assert sorted(ranked["running cats"]) == ["1", "2"]


def test_cosine_finds_a_caption_without_a_common_word() -> None:
    ranked = cosine(CAPTIONS, ["kitten", "locomotive"])
    assert [ranked[query][0] for query in ("kitten", "locomotive")] == ["2", "4"]
    assert len(ranked["kitten"]) == len(CAPTIONS)


def test_photographs_with_most_labels_of_the_query_come_first_then_those_with_fewest_labels() -> None:
    labels = {"1": ["dog", "cat", "car"], "2": ["dog", "cat"], "3": ["dog"], "4": ["traffic light"], "5": []}
    ranked = label_match(labels, ["dogs and a cat", "traffic lights", "puppy"])
    assert ranked == {"dogs and a cat": ["2", "1", "3"], "traffic lights": ["4"], "puppy": []}


def test_a_label_within_another_label_is_not_named() -> None:
    labels = {"1": ["dog"], "2": ["hot dog", "cup"], "3": ["hot dog"]}
    assert label_match(labels, ["eating a hot dog", "dog"]) == {"eating a hot dog": ["3", "2"], "dog": ["1"]}


def test_ids_of_a_file_lose_their_leading_zeros(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"cat": ["000000000042", 71]}))
    assert read_ranking(path) == {"cat": ["42", "71"]}


@pytest.mark.parametrize("content", [["1"], {"cat": "1"}])
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: object) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"mine\.json"):
        read_ranking(path)


def test_the_first_ten_of_fts5_over_the_photographs_are_judged(coco66k_root: Path) -> None:
    captions = read_captions(coco66k_root)
    assert len(captions) == 3000
    ranked = fts5(captions, [query.query for query in read_queries()])
    assert unjudged(ranked, read_judgements()) == {}
