"""Bag of words: which of the most frequent training words a text contains; sparse."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Self

from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.core.types import Features, Modality
from rmsh.data.pairs import bag_of_words

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_VOCABULARY = 2000  # words
_LEAST_TEXTS = 5  # in which a word occurs


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case; numbers count, punctuation does not."""
    return _WORD.findall(text.casefold())


class BagOfWords:
    """A binary vector with one entry per word of the vocabulary: distinct words, in the order of their columns.

    Example:
        >>> BagOfWords(["dog", "red"]).encode(["a red, red door", "the dog"]).toarray()
        array([[0., 1.],
               [1., 0.]], dtype=float32)
    """

    name: ClassVar[str] = "bag-of-words"
    modality: ClassVar[Modality] = "text"
    sparse: ClassVar[bool] = True

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = list(vocabulary)
        self.dim = len(self.vocabulary)
        self._column = {word: i for i, word in enumerate(self.vocabulary)}

    @property
    def fingerprint(self) -> str:
        """Hash of the vocabulary and of the pattern that finds words."""
        return sha256(json.dumps([_WORD.pattern, self.vocabulary]).encode()).hexdigest()[:16]

    @classmethod
    def prepare(cls, items: Sequence[str]) -> Self:
        """Take the 2,000 words that occur in most texts, in at least five of them; equal counts alphabetically."""
        counts = Counter(word for text in items for word in set(words_of(text)))
        least = min(_LEAST_TEXTS, max(len(items) // 10, 1))
        frequent = sorted((w for w, n in counts.items() if n >= least), key=lambda w: (-counts[w], w))
        if not frequent:
            raise DataError(f"No word occurs in {least} or more of the {len(items)} texts; use another text encoder.")
        return cls(frequent[:_VOCABULARY])

    def describe(self) -> dict[str, Any]:
        """Name, fingerprint and vocabulary."""
        return {"name": self.name, "fingerprint": self.fingerprint, "vocabulary": self.vocabulary}

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Self:
        """Create the encoder with the same vocabulary."""
        return cls(description["vocabulary"])

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ignore) -> Features:
        """Features, float32 CSR (n, vocabulary)."""
        rows = [sorted({self._column[w] for w in words_of(text) if w in self._column}) for text in items]
        counter(on_progress, "encode texts", len(rows), "text")(len(rows))
        return bag_of_words(rows, self.dim)
