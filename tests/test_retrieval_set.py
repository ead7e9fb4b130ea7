"""Retrieval sets from files of other programs: who asks and who is asked, in every arrangement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.codes import unpack
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


def test_of_one_set_a_tenth_asks_and_is_left_out_of_the_database(tmp_path: Path) -> None:
    codes, labels = saved(tmp_path / "c.npz", codes=SIGNS), saved(tmp_path / "l.npz", labels=LABELS)
    found = read_retrieval_set(codes, labels)
    assert (len(found.query), len(found.database)) == (4, 36)
    assert not set(found.query.codes.ids) & set(found.database.codes.ids)
    assert found.notes[-1] == "4 of 40 items were drawn as queries (seed 0) and left out of the database"
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


def test_queries_of_their_own_files(tmp_path: Path) -> None:
    codes, labels = saved(tmp_path / "c.npz", codes=SIGNS), saved(tmp_path / "l.npz", labels=LABELS)
    asking, of_asking = saved(tmp_path / "q.npz", B=TEXTS[:2]), saved(tmp_path / "ql.npz", L=LABELS[:2])
    found = read_retrieval_set(codes, labels, query_codes=asking, query_labels=of_asking)
    assert (as_signs(found.query) == TEXTS[:2]).all()
    assert len(found.database) == 40
    assert len(found.notes) == 4


@pytest.mark.parametrize(
    ("direction", "asking", "asked"),
    [(None, SIGNS, TEXTS), ("i2t", SIGNS, TEXTS), ("t2i", TEXTS, SIGNS), ("t2t", TEXTS, TEXTS)],
)
def test_a_direction_says_which_modality_asks(tmp_path: Path, direction: Any, asking: Any, asked: Any) -> None:
    codes = saved(tmp_path / "c.npz", image=SIGNS, text=TEXTS, labels=LABELS)
    found = read_retrieval_set(codes, direction=direction)
    assert (as_signs(found.query) == asking[found.query.codes.ids.astype(int)]).all()
    assert (as_signs(found.database) == asked[found.database.codes.ids.astype(int)]).all()


def test_where_there_is_one_modality_it_is_taken_and_told(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", text=TEXTS, labels=LABELS)
    found = read_retrieval_set(codes)
    assert (as_signs(found.query) == TEXTS[found.query.codes.ids.astype(int)]).all()
    assert "text codes ask text codes" in found.notes


def test_a_direction_is_never_replaced_by_another(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", image=SIGNS, labels=LABELS)
    with pytest.raises(DataError, match=r"found are all image; codes of the database \(text\) are needed"):
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
    with pytest.raises(DataError, match="labels for all, and none for query"):
        read_retrieval_set(codes, saved(tmp_path / "l.npz", labels=LABELS))


def test_queries_without_a_database_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS, qL=LABELS, rL=LABELS)
    with pytest.raises(DataError, match=r"found are query codes; codes of the database \(codes or text or image\) are"):
        read_retrieval_set(codes)


def test_labels_of_queries_without_their_codes_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(ConfigError, match="without their codes; give both"):
        read_retrieval_set(codes, query_labels=codes)


def test_drawing_queries_where_they_are_given_is_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS[:3], rB=SIGNS[3:], qL=LABELS[:3], rL=LABELS[3:])
    with pytest.raises(ConfigError, match="5 queries were to be drawn"):
        read_retrieval_set(codes, queries=5)


def test_sides_of_different_length_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", image=SIGNS, text=TEXTS[:39], labels=LABELS)
    with pytest.raises(DataError, match="labels of shape"):
        read_retrieval_set(codes)


@pytest.mark.parametrize("queries", [0, 40])
def test_an_impossible_number_of_queries_is_refused(tmp_path: Path, queries: int) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(DataError, match=f"{queries} queries of 40 items"):
        read_retrieval_set(codes, queries=queries)


def test_an_unknown_direction_is_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(ConfigError, match="no direction 'sideways'"):
        read_retrieval_set(codes, direction="sideways")  # type: ignore[arg-type]
