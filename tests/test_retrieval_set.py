"""Retrieval sets from codes files and from files of other programs: queries and database in every arrangement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.codes import Codes, unpack
from rmsh.codes_file import CodesFile
from rmsh.core.errors import ConfigError, DataError
from rmsh.retrieval_set import read_retrieval_set

SIGNS = np.where(np.random.default_rng(0).random((40, 8)) < 0.5, 1, -1)
TEXTS = -SIGNS
LABELS = np.eye(4, dtype=np.uint8)[np.arange(40) % 4]


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def as_signs(side: Any) -> np.ndarray:
    return unpack(side.codes.packed, side.codes.bits) * 2 - 1


def test_a_tenth_of_one_set_is_drawn_and_removed_from_the_database(tmp_path: Path) -> None:
    codes, labels = saved(tmp_path / "c.npz", codes=SIGNS), saved(tmp_path / "l.npz", labels=LABELS)
    found = read_retrieval_set(codes, labels)
    assert (len(found.query), len(found.database)) == (4, 36)
    assert not set(found.query.codes.ids) & set(found.database.codes.ids)
    assert "4 of 40 items were drawn as queries (seed 0) and removed from the database" in found.notes[-1]
    assert "not trained on them" in found.notes[-1]
    rows = found.query.codes.ids.astype(int)
    assert (as_signs(found.query) == SIGNS[rows]).all()
    assert (found.query.labels == LABELS[rows]).all()


def test_the_same_rows_are_drawn_again(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    first, second = (read_retrieval_set(codes, queries=5).query.codes.ids.tolist() for _ in range(2))
    assert first == second
    assert len(first) == 5


def test_queries_and_database_of_one_file(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS[:3], rB=SIGNS[3:], qL=LABELS[:3], rL=LABELS[3:])
    found = read_retrieval_set(codes)
    assert (as_signs(found.query) == SIGNS[:3]).all()
    assert (found.database.labels == LABELS[3:]).all()


def test_queries_from_separate_files(tmp_path: Path) -> None:
    codes, labels = saved(tmp_path / "c.npz", codes=SIGNS), saved(tmp_path / "l.npz", labels=LABELS)
    of_query, labels_of_query = saved(tmp_path / "q.npz", B=TEXTS[:2]), saved(tmp_path / "ql.npz", L=LABELS[:2])
    found = read_retrieval_set(codes, labels, query_codes=of_query, query_labels=labels_of_query)
    assert (as_signs(found.query) == TEXTS[:2]).all()
    assert len(found.database) == 40
    assert len(found.notes) == 4


@pytest.mark.parametrize(
    ("direction", "of_query", "of_database"),
    [(None, SIGNS, TEXTS), ("i2t", SIGNS, TEXTS), ("t2i", TEXTS, SIGNS), ("t2t", TEXTS, TEXTS)],
)
def test_a_direction_says_what_searches_what(tmp_path: Path, direction: Any, of_query: Any, of_database: Any) -> None:
    codes = saved(tmp_path / "c.npz", image=SIGNS, text=TEXTS, labels=LABELS)
    found = read_retrieval_set(codes, direction=direction)
    assert (as_signs(found.query) == of_query[found.query.codes.ids.astype(int)]).all()
    assert (as_signs(found.database) == of_database[found.database.codes.ids.astype(int)]).all()


def test_a_single_modality_is_used_and_noted(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", text=TEXTS, labels=LABELS)
    found = read_retrieval_set(codes)
    assert (as_signs(found.query) == TEXTS[found.query.codes.ids.astype(int)]).all()
    assert "text codes search text codes" in found.notes


def test_a_direction_is_never_replaced_by_another(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", image=SIGNS, labels=LABELS)
    with pytest.raises(DataError, match=r"all image; .*database \(text\)"):
        read_retrieval_set(codes, direction="i2t")


def test_queries_and_database_in_two_modalities(tmp_path: Path) -> None:
    codes = saved(
        tmp_path / "c.npz", qBX=SIGNS[:3], qBY=TEXTS[:3], rBX=SIGNS[3:], rBY=TEXTS[3:], qL=LABELS[:3], rL=LABELS[3:]
    )
    found = read_retrieval_set(codes, direction="t2i")
    assert (as_signs(found.query) == TEXTS[:3]).all()
    assert (as_signs(found.database) == SIGNS[3:]).all()


def test_labels_in_other_parts_than_the_codes_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS[:3], rB=SIGNS[3:])
    with pytest.raises(DataError, match="query"):
        read_retrieval_set(codes, saved(tmp_path / "l.npz", labels=LABELS))


def test_queries_without_a_database_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS, qL=LABELS, rL=LABELS)
    with pytest.raises(DataError, match=r"query codes; .*database \(codes or text or image\)"):
        read_retrieval_set(codes)


def test_labels_of_queries_without_their_codes_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(ConfigError, match=r"c\.npz"):
        read_retrieval_set(codes, query_labels=codes)


def test_drawing_queries_where_they_are_given_is_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS[:3], rB=SIGNS[3:], qL=LABELS[:3], rL=LABELS[3:])
    with pytest.raises(ConfigError, match="--queries is 5"):
        read_retrieval_set(codes, queries=5)


def test_sides_of_different_length_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", image=SIGNS, text=TEXTS[:39], labels=LABELS)
    with pytest.raises(DataError, match=r"\(40, 4\)"):
        read_retrieval_set(codes)


@pytest.mark.parametrize("queries", [0, 40])
def test_an_impossible_number_of_queries_is_refused(tmp_path: Path, queries: int) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(DataError, match=f"{queries} .*40"):
        read_retrieval_set(codes, queries=queries)


def test_an_unknown_direction_is_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(ConfigError, match="'sideways'"):
        read_retrieval_set(codes, direction="sideways")


CODED: dict[str, Any] = {
    "ids": [f"é{row}" for row in range(12)],
    "bits": 10,
    "image": Codes.from_values(np.random.default_rng(0).standard_normal((12, 10))).packed,
    "text": Codes.from_values(np.random.default_rng(1).standard_normal((12, 10))).packed,
    "labels": np.eye(3, dtype=np.uint8)[np.arange(12) % 3],
    "split": ["query"] * 3 + ["database"] * 8 + [""],
}


def test_a_codes_file_with_a_split(tmp_path: Path) -> None:
    CodesFile(**CODED).save(tmp_path / "codes.npz")
    found = read_retrieval_set(tmp_path / "codes.npz", direction="t2i")
    assert found.query.codes.ids.tolist() == CODED["ids"][:3]
    assert (found.query.codes.packed == CODED["text"][:3]).all()
    assert (found.database.codes.packed == CODED["image"][3:11]).all()
    assert found.notes[-1] == "the direction is t2i"


def test_a_codes_file_without_a_split_has_queries_drawn(tmp_path: Path) -> None:
    CodesFile(**{**CODED, "split": None}).save(tmp_path / "codes.npz")
    found = read_retrieval_set(tmp_path / "codes.npz", queries=2)
    assert (len(found.query), len(found.database)) == (2, 10)
    assert "2 of 12 items were drawn" in found.notes[1]


def test_a_codes_file_with_labels_from_another_file(tmp_path: Path) -> None:
    CodesFile(**{**CODED, "labels": None, "classes": ()}).save(tmp_path / "codes.npz")
    np.savez(tmp_path / "labels.npz", labels=CODED["labels"][::-1], ids=np.array(CODED["ids"])[::-1])
    found = read_retrieval_set(tmp_path / "codes.npz", tmp_path / "labels.npz")
    assert (found.query.labels == CODED["labels"][:3]).all()


def test_an_option_that_contradicts_a_codes_file_is_refused(tmp_path: Path) -> None:
    CodesFile(**CODED).save(tmp_path / "codes.npz")
    with pytest.raises(ConfigError, match=r"codes\.npz .*bits"):
        read_retrieval_set(tmp_path / "codes.npz", bits=10)
    with pytest.raises(ConfigError, match="--queries is 2"):
        read_retrieval_set(tmp_path / "codes.npz", queries=2)
