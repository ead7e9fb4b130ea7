"""The stored queries and judgements, and what of a ranking is unjudged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lab.first_page.judged import (
    GRADES,
    UNANSWERABLE,
    Query,
    add_grades,
    check_ranking,
    read_judgements,
    read_queries,
    unjudged,
    write_judgements,
)
from rmsh.core.errors import ConfigError, DataError


def test_each_kind_has_as_many_queries_in_both_parts() -> None:
    counts = Counter((query.kind, query.part) for query in read_queries())
    assert len(counts) == 10
    assert set(counts.values()) == {7}


def test_absent_and_gibberish_queries_are_kept_apart() -> None:
    assert {query.kind for query in read_queries(answerable=False)} == set(UNANSWERABLE)


def test_no_query_occurs_twice() -> None:
    queries = [query.query.lower() for query in read_queries() + read_queries(answerable=False)]
    assert len(set(queries)) == len(queries)


def test_judgements_are_of_known_queries_and_have_known_grades() -> None:
    judgements = read_judgements()
    assert set(judgements) == {query.query for query in read_queries()}
    assert {grade for grades in judgements.values() for grade in grades.values()} == set(GRADES)
    assert all(item.isdigit() and item[0] != "0" for grades in judgements.values() for item in grades)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ConfigError, match="'train'"):
        read_queries("train")


def test_judgements_survive_writing_and_reading(tmp_path: Path) -> None:
    judgements = {'a "cat"': {"7": 2, "12": 0}, "dog": {}}
    write_judgements(judgements, tmp_path / "judgements.json")
    assert read_judgements(tmp_path / "judgements.json") == judgements


def test_a_new_grade_replaces_the_old_one_and_an_unknown_query_is_refused() -> None:
    judgements = {"cat": {"1": 0, "2": 1}}
    add_grades(judgements, {"cat": {"1": 2, "3": 0}})
    assert judgements == {"cat": {"1": 2, "2": 1, "3": 0}}
    with pytest.raises(DataError, match="'dog'"):
        add_grades(judgements, {"dog": {"1": 2}})


def test_only_the_first_ten_have_to_be_judged() -> None:
    ranking = {"cat": [str(i) for i in range(1, 21)], "dog": []}
    assert unjudged(ranking, {"cat": {str(i): 0 for i in range(1, 10)}}) == {"cat": ["10"]}


@pytest.mark.parametrize("ranking", [{"dog": ["1"]}, {"cat": ["1", "2", "1"]}])
def test_a_ranking_without_a_query_or_with_an_item_twice_is_refused(ranking: dict[str, list[str]]) -> None:
    with pytest.raises(DataError, match="'cat'"):
        check_ranking(ranking, [Query("cat", "object", "dev")])
