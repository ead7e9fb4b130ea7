"""Splits: disjoint parts, held-out validation, and files that are only read for their own data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.core.errors import DataError, FormatError
from rmsh.data.splits import Split, hold_out_validation, random_split, unseen_split

IDS = np.array(["a", "b", "c", "d", "e"])


def tiny() -> Split:
    return Split("tiny", database=[0, 3, 1], query=[4], train=[0, 1])


@pytest.mark.parametrize("part", ["database", "train"])
def test_a_query_that_is_also_searched_or_learned_from_is_refused(part):
    parts = {"database": [0], "train": [0], "query": [2, 3]} | {part: [0, 3]}
    with pytest.raises(DataError, match=rf"1 rows are both in query and in {part}, the first is row 3"):
        Split("s", **parts)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [([0, 0], "row 0 is listed more than once"), ([-1], "row -1; rows are counted from 0"),
     ([0.5], "give a list of row numbers"), ([[0]], "give a list of row numbers"), ([True], "give a list of row")],
)  # fmt: skip
def test_invalid_row_numbers_are_refused(rows, sentence):
    with pytest.raises(DataError, match=f"split 's': database.*{sentence}"):
        Split("s", database=rows, query=[5], train=[])


def test_a_split_of_more_items_than_there_are_is_refused():
    assert tiny().check(5).name == "tiny"
    with pytest.raises(DataError, match="query has row 4, but there are 4 items"):
        tiny().check(4)


def test_the_hash_changes_with_the_rows_and_not_with_the_name():
    same = Split("other", database=[0, 3, 1], query=[4], train=[0, 1])
    moved = Split("tiny", database=[0, 3], query=[4], train=[1, 0, 1][:2])
    assert tiny().sha256 == same.sha256
    assert tiny().sha256 != moved.sha256


def test_a_saved_split_is_read_for_the_same_items(tmp_path: Path):
    tiny().save(tmp_path / "split.json", IDS)
    loaded = Split.load(tmp_path / "split.json", IDS)
    assert (loaded.name, loaded.sha256) == ("tiny", tiny().sha256)


def test_saving_returns_the_hash_that_the_file_states(tmp_path: Path):
    stated = tiny().save(tmp_path / "split.json", IDS)
    assert json.loads((tmp_path / "split.json").read_text())["sha256"] == stated


def test_a_split_follows_its_ids_into_another_order(tmp_path: Path):
    tiny().save(tmp_path / "split.json", IDS)
    loaded = Split.load(tmp_path / "split.json", IDS[::-1])
    assert IDS[::-1][loaded.database].tolist() == ["a", "d", "b"]


@pytest.mark.parametrize("ids", [["a", "b", "c", "d", "x"], ["a", "b", "c", "d", "e", "f"], ["a", "b", "c", "d"]])
def test_a_split_of_other_items_is_refused(tmp_path: Path, ids):
    tiny().save(tmp_path / "split.json", IDS)
    with pytest.raises(DataError, match=rf"splits 5 items.* {len(ids)} given"):
        Split.load(tmp_path / "split.json", np.array(ids))


def test_a_split_is_not_saved_with_too_few_ids(tmp_path: Path):
    with pytest.raises(DataError, match="there are 2 items"):
        tiny().save(tmp_path / "split.json", IDS[:2])


def _changed(path: Path, **changes: object) -> Path:
    tiny().save(path, IDS)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def test_a_split_file_changed_by_hand_is_refused(tmp_path: Path):
    with pytest.raises(FormatError, match="was changed after it was written"):
        Split.load(_changed(tmp_path / "split.json", query=["c"]), IDS)


def test_a_split_file_of_a_newer_version_is_refused(tmp_path: Path):
    with pytest.raises(FormatError, match="has version 2 of 'rmsh-split', this rmsh reads up to version 1; update"):
        Split.load(_changed(tmp_path / "split.json", version=2), IDS)


@pytest.mark.parametrize("text", ["[]", '{"format": "other"}'])
def test_another_json_file_is_not_a_split(tmp_path: Path, text):
    (tmp_path / "split.json").write_text(text)
    with pytest.raises(FormatError, match="is not of the format 'rmsh-split'"):
        Split.load(tmp_path / "split.json", IDS)


def test_a_missing_split_file_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"split.json does not exist"):
        Split.load(tmp_path / "split.json", IDS)


def test_invalid_json_is_refused(tmp_path: Path):
    (tmp_path / "split.json").write_text("{")
    with pytest.raises(FormatError, match="JSON"):
        Split.load(tmp_path / "split.json", IDS)


@given(n=st.integers(2, 60), seed=st.integers(0, 5), data=st.data())
def test_a_random_split_covers_all_rows_once(n, seed, data):
    queries = data.draw(st.integers(1, n - 1))
    split = random_split(n, queries, seed=seed)
    assert len(split.query) == queries
    assert sorted([*split.query, *split.database]) == list(range(n))
    assert split.sha256 == random_split(n, queries, seed=seed).sha256


def test_another_seed_draws_other_queries():
    assert random_split(100, 10, seed=1).query.tolist() != random_split(100, 10, seed=2).query.tolist()


@pytest.mark.parametrize("queries", [0, 5, -1])
def test_a_split_without_queries_or_without_database_is_refused(queries):
    with pytest.raises(DataError, match=f"{queries} queries for 5 items"):
        random_split(5, queries)


def test_validation_queries_come_from_the_training_rows_and_are_neither_searched_nor_learned_from():
    split = Split("s", database=np.arange(50), query=np.arange(50, 60), train=np.arange(30))
    held = hold_out_validation(split, 20)
    assert len(held.query) == 20
    assert sorted([*held.query, *held.train]) == list(range(30))
    assert sorted([*held.query, *held.database]) == list(range(50))


@pytest.mark.parametrize(("training", "queries"), [(25_000, 2000), (500, 50), (4, 1)])
def test_few_training_rows_give_a_tenth_to_validation(training, queries):
    rows = np.arange(training)
    assert len(hold_out_validation(Split("s", rows, [training], rows)).query) == queries


@pytest.mark.parametrize("n", [0, 3])
def test_a_validation_part_of_all_training_rows_is_refused(n):
    with pytest.raises(DataError, match=f"{n} validation queries for 2 training rows"):
        hold_out_validation(tiny(), n)


def test_unseen_rows_are_neither_trained_on_nor_validation_rows():
    split = random_split(1000, 100)
    unseen, tuning = unseen_split(split), unseen_split(split, validation=True)
    assert tuning.query.tolist() == hold_out_validation(split).query.tolist()
    assert unseen.query.tolist() == split.query.tolist()
    assert tuning.train.tolist() == unseen.train.tolist()
    assert len(tuning.database) == 0
    parts = np.concatenate([unseen.database, unseen.train, tuning.query])
    assert sorted(parts) == split.database.tolist()
    assert len(unseen.database) == 162  # a fifth of 900 - 90
    assert unseen.sha256 == unseen_split(split).sha256
    assert unseen.database.tolist() != unseen_split(split, seed=1).database.tolist()


def test_too_few_rows_for_unseen_are_refused():
    with pytest.raises(DataError, match="s has 2 training rows"):
        unseen_split(Split("s", [0, 1], [2], [0, 1]))
