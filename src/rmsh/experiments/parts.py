"""The parts of the data that a run needs: what it learns from, what asks, what is searched; all with features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rmsh import pipeline
from rmsh.data.splits import Split, hold_out_validation
from rmsh.errors import DataError
from rmsh.experiments.noise import disturb_features, with_noisy_labels
from rmsh.metrics.retrieval import draw_queries
from rmsh.progress import OnProgress, ignore

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.data.open import Opened
    from rmsh.data.pairs import Pairs
    from rmsh.experiments.run import Run

__all__ = ["Parts", "parts_of", "split_of"]


@dataclass(frozen=True, eq=False)
class Parts:
    """The three parts of the data of a run, and the rows they are."""

    train: Pairs
    query: Pairs
    database: Pairs
    split: Split


def split_of(run: Run, opened: Opened) -> Split:
    """The rows a run learns from, asks and searches; where the data has no split, queries are drawn.

    Raises:
        DataError: there are fewer training pairs than the run asks for.
    """
    pairs, split = opened.pairs, opened.split or draw_queries(len(opened.pairs), None)[0]
    split = hold_out_validation(split) if run.validation else split
    complete = pairs.has_image & pairs.has_text
    if not complete.all():  # an item without a modality can neither ask nor be found in both directions
        split = Split(split.name, *(rows[complete[rows]] for rows in (split.database, split.query, split.train)))
    if run.train is None:
        return split
    if run.train > len(split.train):
        raise DataError(
            f"{run.train:,} training pairs were asked for, but {opened.name} has {len(split.train):,}; ask for fewer."
        )
    # The same rows whatever the seed, so that runs differ by what is learned alone.
    chosen = np.sort(np.random.default_rng(0).permutation(split.train)[: run.train])
    if run.validation and np.array_equal(split.train, split.database):
        # What is searched is what is learned from, as it will be where it counts: a method that knows its training
        # pairs by heart profits there, and must do so where options are chosen.
        return replace(split, train=chosen, database=chosen)
    return replace(split, train=chosen)


def parts_of(run: Run, opened: Opened, *, cache: Path | None = None, on_progress: OnProgress = ignore) -> Parts:
    """Features for the data, and its parts, with the noise that the run asks for.

    Args:
        run: what is to be done.
        opened: the data, as ``open_pairs`` gives it.
        cache: a folder where features are kept: they are made once for all runs.
        on_progress: is told how far it is.

    Raises:
        DataError: as for :func:`split_of`; or noise is asked for in what is not there.
    """
    if opened.pairs.labels is None:
        raise DataError(f"{opened.name} has no labels, and scores are made of them; give labels for these pairs.")
    split = split_of(run, opened)
    learned = replace(opened, split=split)  # encoders that learn words see training pairs only
    encoders = pipeline.prepare_encoders(learned, {**pipeline.DEFAULT_ENCODERS, "text": run.text})
    pairs = pipeline.encode_raw(opened.pairs, encoders, cache=cache, on_progress=on_progress)
    train = pairs.take(split.train)
    # Mostly the whole database is learned from: a second copy would cost hundreds of megabytes.
    database = train if np.array_equal(split.train, split.database) else pairs.take(split.database)
    query = disturb_features(pairs.take(split.query), "image", run.image_noise, seed=run.seed)
    query = disturb_features(query, "text", run.text_noise, seed=run.seed)
    return Parts(with_noisy_labels(train, run.label_noise, seed=run.seed), query, database, split)
