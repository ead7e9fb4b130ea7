"""The cut-off: chosen where absent things and gibberish are told apart from what the photographs show."""

from __future__ import annotations

import numpy as np

from lab.data import RESULTS
from lab.first_page.cut_off import choose
from rmsh.core.files import read_json
from rmsh.search.scoring import WEAK, WEAK_ALONE


def test_a_right_page_that_is_called_weak_costs_twice() -> None:
    unanswered = np.array([3.0, 4.0, 6.0, 6.5])
    assert choose(np.array([5.0, 7.0, 8.0]), unanswered) == 4.1  # half of the wrong pages do not outweigh a third
    assert choose(np.array([5.0, *np.arange(7.0, 12.0)]), unanswered) == 6.6  # but they do outweigh a sixth
    assert choose(np.array([np.inf, 9.0]), unanswered) == 6.6


def test_the_product_uses_the_cut_offs_that_were_measured() -> None:
    rows = read_json(RESULTS / "first_page" / "cut_off.json")["rows"]
    assert {row["library"]: row["cut-off"] for row in rows} == {
        "images and captions": WEAK,
        "images alone": WEAK_ALONE,
        "captions alone": WEAK_ALONE,
    }
    assert next(row["chosen on dev"] for row in rows if row["library"] == "images alone") == WEAK_ALONE
