"""Describe a data set.

Example:
    rmsh data card coco66k
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rmsh.cli.console import Console  # noqa: TC001  # typer reads it


def card(
    console: Console,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Data with labels, as for `rmsh train`.")],
) -> None:
    """Describe a data set: counts, labels, entropy, dissimilar pairs, chance levels; `rmsh bounds` computes delta.

    Example:
        rmsh data card pairs
    """
    from rmsh.data.open import open_pairs
    from rmsh.datacard import card_sentences, make_card

    opened = open_pairs(data)
    console.note(*opened.notes)
    made = make_card(opened)
    console.result({"card": asdict(made)}, *card_sentences(made))
