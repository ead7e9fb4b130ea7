"""The figure of a data card: it is drawn for few and for many classes, and only into files it can write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rmsh.core.errors import ConfigError
from rmsh.data.open import Opened, open_pairs
from rmsh.data.pairs import Pairs
from rmsh.datacard import DataCard, make_card, plot_card


@pytest.fixture(scope="module")
def card() -> DataCard:
    return make_card(open_pairs("generated:60"))


def drawn(card: DataCard, path: Path) -> str:
    """The figure as SVG with its words as text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        plot_card(card, path)
    return path.read_text()


def test_the_figure_names_classes_and_chance(card: DataCard, tmp_path: Path):
    figure = drawn(card, tmp_path / "card.svg")
    for words in (">person<", "a random ranking scores NDCG@500 0.", "labels per item, 2.", "12 classes"):
        assert words in figure


def test_rarer_classes_are_counted_where_there_are_many(tmp_path: Path):
    pairs = Pairs(ids=np.arange(90).astype(str), labels=np.eye(90, dtype=np.uint8))
    figure = drawn(make_card(Opened(pairs, None, (), "many")), tmp_path / "card.svg")
    assert "(and 50 rarer classes)" in figure
    assert "random ranking" not in figure


def test_another_suffix_is_refused(card: DataCard, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"'.jpg'.* .pdf, .png or .svg"):
        plot_card(card, tmp_path / "card.jpg")
