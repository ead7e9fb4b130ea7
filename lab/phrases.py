"""NEST that also learns the phrases of captions: people who search type a word or a few, not sentences.

A phrase is one to four successive words of a caption, without stop words at its ends, that at least two captions have.
In the first stage, each item of a batch adds one of its phrases, drawn at random, or, less often, a name: that of one
of its labels or those of two, "cat and couch". Contrast ranks the images of the batch for these texts and vice versa;
all images whose captions have the phrase, or which have the labels, are right. The labels of a phrase are the shares of
its items that have them. Batches are as large as in the second stage: each image is compared with more others. The
second stage, the codes, is that of NEST.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from scipy import sparse
from torch import Tensor, nn

from rmsh.core.files import cache_folder
from rmsh.methods.nest import NEST, Objective
from rmsh.training.loop import Batch, Losses, Schedule, TrainingSet
from rmsh.training.losses import classification_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmsh.core.types import FloatArray, IntArray, LabelArray
    from rmsh.features.base import Encoder

LONGEST, LEAST = 4, 2  # words of a phrase, captions that have it
_EPOCHS, _LABELS, _KEPT = 12, 0.3, 0.5  # of the first stage; weight of labels in it, share of dropout at its end
_NAMED = 0.15  # share of the items of a batch that add a name

_ENDS = re.compile(  # words that no phrase begins or ends with
    "an?|and|are|as|at|be|been|being|by|down|for|from|front|has|have|her|his|in|into|is|its?|near|next|off?|on|one|other|out|"
    "over|some|that|the|their|there|this|to|top|up|very|while|with"
)


class Phrases(NamedTuple):
    """Features of phrases, and which items have them."""

    features: FloatArray  # (phrases, d)
    items: sparse.csr_matrix  # (items, phrases), 1 or 0

    def take(self, rows: IntArray) -> Phrases:
        """Those of some items; the others are never drawn."""
        return Phrases(self.features, self.items[rows])


def phrases_of(caption: str) -> set[str]:
    """The phrases of a caption.

    Example:
        >>> sorted(phrases_of("A dog on the beach"))
        ['beach', 'dog', 'dog on the beach']
    """
    words = re.findall(r"[a-z']+", caption.casefold())
    spans = (words[i : i + n] for n in range(1, LONGEST + 1) for i in range(len(words) - n + 1))
    found = {" ".join(span) for span in spans if not (_ENDS.fullmatch(span[0]) or _ENDS.fullmatch(span[-1]))}
    return {phrase for phrase in found if len(phrase) > 2}  # letters


def read_phrases(captions: Sequence[str], encoder: Encoder) -> Phrases:
    """The phrases that at least two captions have, with features."""
    return _with_features([phrases_of(caption) for caption in captions], encoder)


def read_names(labels: LabelArray, class_names: Sequence[str], encoder: Encoder) -> Phrases:
    """The names of labels, and those of two, that at least two items have, with features."""
    return _with_features([names_of([class_names[c] for c in np.flatnonzero(row).tolist()]) for row in labels], encoder)


def names_of(labels: Sequence[str]) -> set[str]:
    """The names of an item's labels, alone and two at a time.

    Example:
        >>> sorted(names_of(["cat", "couch"]))
        ['cat', 'cat and couch', 'couch']
    """
    return {*labels, *(f"{one} and {other}" for one, other in combinations(labels, 2))}


def _with_features(found: Sequence[set[str]], encoder: Encoder) -> Phrases:
    """What at least two items have, from the texts of each item."""
    counts = Counter(phrase for each in found for phrase in each)
    known = {phrase: column for column, phrase in enumerate(sorted(p for p in counts if counts[p] >= LEAST))}
    columns = [sorted(known[phrase] for phrase in each if phrase in known) for each in found]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in columns])])
    inside = np.concatenate([np.array(each, np.int64) for each in columns])
    items = sparse.csr_matrix((np.ones(len(inside), np.float32), inside, starts), shape=(len(found), len(known)))
    names = np.array(list(known))
    file = cache_folder() / f"phrases-{sha256(names.tobytes()).hexdigest()[:16]}.npy"
    if not file.exists():
        np.save(file, encoder.encode(names.tolist()).astype(np.float16))
    return Phrases(np.load(file).astype(np.float32), items)


class PhraseNEST(NEST):
    """NEST that learns from phrases and names as well: those of the captions and labels of the pairs, row by row."""

    def __init__(self, phrases: Phrases, names: Phrases, **options: Any) -> None:
        super().__init__(**options)
        self.phrases, self.names = phrases, names

    def _stages(self, items: int) -> list[Schedule]:
        first, second = super()._stages(items)
        return [replace(first, epochs=self.config.epochs or _EPOCHS, batch=second.batch), second]

    def _objective(self, data: TrainingSet) -> PhraseObjective:
        epochs = [stage.epochs for stage in self._stages(len(data))]
        return PhraseObjective(data, self.config, epochs=epochs, phrases=self.phrases, names=self.names)


class PhraseObjective(Objective):
    """The loss of NEST, with that of phrases and names in the first stage."""

    def __init__(self, data: TrainingSet, config: Any, *, epochs: list[int], phrases: Phrases, names: Phrases) -> None:
        super().__init__(data, config, epochs=epochs)
        self.phrases, self.names = phrases.items, names.items
        self.items = sparse.hstack([self.phrases, self.names], format="csr")
        self.phrase_features = torch.from_numpy(np.concatenate([phrases.features, names.features]))
        shares = (self.items.T @ data.labels.astype(np.float32)) / np.maximum(self.items.sum(axis=0).T, 1)
        self.phrase_labels = torch.from_numpy(np.asarray(shares, np.float32))
        self.phrase_scale = nn.Parameter(self.log_scale.detach().clone())

    def _learn_meaning(self, batch: Batch) -> Losses:
        drawn = self._draw(batch.rows)
        right = torch.from_numpy(self.items[batch.rows.numpy()][:, drawn].toarray())
        texts = self.text_network(torch.cat([batch.texts, self.phrase_features[drawn]]))
        images, (captions, phrases) = self.image_network(batch.images), texts.split([len(right), len(drawn)])
        weights, embedded = self.label_weights[batch.rows], self._unit(images)
        terms = {
            f"{name} labels": _LABELS * (weights * classification_loss(found[:, : self.classes], batch.labels)).mean()
            for name, found in (("image", images), ("text", captions))
        }
        shares = self.phrase_labels[drawn]
        terms["phrase labels"] = _LABELS * classification_loss(phrases[:, : self.classes], shares).mean()
        terms["pairs"] = _contrast(self.log_scale, embedded, self._unit(captions), torch.eye(len(right)))
        terms["phrases"] = _contrast(self.phrase_scale, embedded, self._unit(phrases), right)
        return Losses(terms)

    def _set_dropout(self, share: float) -> None:
        """Half of it is kept to the end: what counts are images that were not trained on."""
        super()._set_dropout(max(share, _KEPT))

    def _unit(self, outputs: Tensor) -> Tensor:
        return F.normalize(outputs[:, self.classes :], dim=1)

    def _draw(self, rows: Tensor) -> Any:
        """A phrase of each item that has any, or a name, without repetitions; columns of all."""
        named = torch.rand(len(rows)) < _NAMED
        names = self.phrases.shape[1] + _one_of_each(self.names, rows[named].numpy())
        return np.unique(np.concatenate([_one_of_each(self.phrases, rows[~named].numpy()), names]))


def _one_of_each(items: sparse.csr_matrix, rows: IntArray) -> IntArray:
    """A random column of each of these rows that has any."""
    starts, ends = items.indptr[rows], items.indptr[rows + 1]
    places = starts + (torch.rand(len(rows)).numpy() * (ends - starts)).astype(np.int64)
    return np.asarray(items.indices[places[ends > starts]], np.int64)


def _contrast(log_scale: Tensor, images: Tensor, texts: Tensor, right: Tensor) -> Tensor:
    """Cross-entropy of softmaxes over texts and over images with equal shares of the right ones, (images, texts)."""
    logits = log_scale.exp().clamp(max=100.0) * images @ texts.T
    losses = []
    for scores, matches in ((logits, right), (logits.T, right.T)):
        some = matches.sum(dim=1) > 0
        target = F.normalize(matches[some], p=1, dim=1)
        losses.append(-(target * scores[some].log_softmax(dim=1)).sum(dim=1).mean())
    return torch.stack(losses).mean()
