"""The report of a build in words: scores next to chance, and what label names find."""

from __future__ import annotations

from rmsh.builder import Built
from rmsh.builder.scores import describe_size, describe_words, score_tables


def test_scores_are_shown_with_chance(built: Built) -> None:
    score, recall = built.report["scores"]["t2i"], built.report["recall"]["t2i"]
    (title, recalls, of_recall), (_, headings, rows) = score_tables(built.report)
    assert title == "4 items not trained on find their own counterpart among 40"
    assert recalls == ["", "recall@1", "chance", "recall@10", "chance"]
    assert headings == ["", "NDCG@50", "chance", "P@50", "chance", "mAP", "chance"]
    assert {row[0] for row in rows} == {"Text to image", "Image to text", "Image to image", "Text to text"}
    (row,) = (row for row in rows if row[0] == "Text to image")
    assert row[1:3] == [f"{score['ndcg'][kind]:.3f}" for kind in ("value", "chance")]
    (row,) = (row for row in of_recall if row[0] == "Text to image")
    assert row[3:] == [f"{recall['recall@10'][kind]:.3f}" for kind in ("value", "chance")]


def test_there_are_no_tables_without_scores() -> None:
    assert score_tables({"recall": {}, "scores": {}}) == []


def test_words_and_sizes_are_sentences() -> None:
    words = {"queries": 3, "images": 40, "precision@10": {"value": 0.2, "chance": 0.25, "best": 1.0, "error": 0.1}}
    assert "3 labels as queries: 0.200 of the first ten of 40 images" in describe_words(words)
    assert "chance 0.250, best possible 1.000" in describe_words(words)
    assert "64 bytes for codes and 720 bytes for vectors" in describe_size({"codes": 64.0, "vectors": 720.0})
    assert describe_size({"codes": 8.0, "vectors": 0.0}) == "Each item takes 8 bytes for codes."
