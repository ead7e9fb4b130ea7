"""Drawing the split of a protocol: counts, parts, strata, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks.declarations import Protocol
from lab.benchmarks.splits import draw_split, stratified_rows
from rmsh.core.errors import DataError

LABELS = np.tile(np.eye(4, dtype=np.uint8), (25, 1))  # a hundred rows, four classes


ALL = np.ones(100, dtype=np.bool_)


PAPER = Protocol(name="paper", about="ten ask, fifty are searched, five teach", queries=10, database=50, train=5)


def test_the_counts_are_those_of_the_protocol_and_the_parts_are_disjoint() -> None:
    split = draw_split(PAPER, LABELS, usable=ALL)
    assert (len(split.query), len(split.database), len(split.train)) == (10, 50, 5)
    assert np.isin(split.train, split.database).all()


def test_a_seed_draws_the_same_rows_and_another_seed_others() -> None:
    drawn = [draw_split(PAPER, LABELS, usable=ALL, seed=seed).sha256 for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_is_not_usable_is_in_no_part() -> None:
    split = draw_split(PAPER.model_copy(update={"database": None}), LABELS, usable=np.arange(100) >= 30)
    assert min(split.query.min(), split.database.min()) == 30
    assert len(split.database) == 60


def test_a_row_without_labels_is_in_the_database_and_never_a_query() -> None:
    labels = LABELS * (np.arange(100) >= 60)[:, None].astype(np.uint8)
    split = draw_split(Protocol(name="p", about="", queries=30), labels, usable=ALL)
    assert split.query.min() >= 60
    assert np.isin(np.arange(60), split.database).all()


def test_published_parts_are_kept_apart() -> None:
    part = np.repeat(["train", "val"], [70, 30])
    split = draw_split(Protocol(name="p", about="", queries=30, parts=("train", "val")), LABELS, usable=ALL, part=part)
    assert split.database.tolist() == list(range(70))
    assert split.query.tolist() == list(range(70, 100))


def test_in_order_takes_the_first_rows() -> None:
    split = draw_split(Protocol(name="rows", about="", queries=20, train=30, in_order=True), LABELS, usable=ALL)
    assert split.query.tolist() == list(range(20))
    assert split.train.tolist() == list(range(20, 50))


def test_by_default_a_tenth_are_queries() -> None:
    assert len(draw_split(Protocol(name="tenth", about=""), LABELS, usable=ALL).query) == 10


@pytest.mark.parametrize(
    "protocol",
    [
        PAPER.model_copy(update={"queries": 51}),
        PAPER.model_copy(update={"database": 91}),
        PAPER.model_copy(update={"queries": 100, "database": None}),
        PAPER.model_copy(update={"database": None, "train": 91}),
    ],
)
def test_too_few_pairs_are_refused_with_both_counts(protocol: Any) -> None:
    with pytest.raises(DataError, match=r"The split 'paper' needs .* 100 pairs to draw from; give the whole data set"):
        draw_split(protocol, LABELS, usable=ALL)


def test_parts_that_the_files_do_not_name_are_refused() -> None:
    with pytest.raises(DataError, match=r"parts \(train, val\)"):
        draw_split(PAPER.model_copy(update={"parts": ("train", "val")}), LABELS, usable=ALL)


def test_a_stratified_split_keeps_the_share_of_a_rare_class() -> None:
    labels = np.zeros((1000, 2), dtype=np.uint8)
    labels[:, 0], labels[:50, 1] = 1, 1
    split = draw_split(
        Protocol(name="p", about="", queries=100), labels, usable=np.ones(1000, dtype=np.bool_), stratified=True
    )
    assert split.name == "p-stratified"
    assert labels[split.query, 1].sum() == 5


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5), data=st.data())
def test_a_stratified_draw_is_within_one_of_each_share(sizes: Any, data: Any) -> None:
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    count = data.draw(st.integers(1, len(stratum)))
    labels = np.eye(len(sizes), dtype=np.uint8)[stratum]
    drawn = stratified_rows(np.arange(len(stratum)), count, labels=labels, rng=np.random.default_rng(0))
    assert len(set(drawn.tolist())) == count
    shares = np.array(sizes) * count / len(stratum)
    assert (np.abs(np.bincount(stratum[drawn], minlength=len(sizes)) - shares) < 1).all()


def test_the_stratum_is_the_rarest_label_not_the_first() -> None:
    labels = np.array([[1, 1], [1, 0], [1, 0], [1, 1]], dtype=np.uint8)  # strata of two rows each
    rng = np.random.default_rng(0)
    draws = [stratified_rows(np.arange(4), 2, labels=labels, rng=rng) for _ in range(20)]
    assert {int(labels[drawn, 1].sum()) for drawn in draws} == {1}
