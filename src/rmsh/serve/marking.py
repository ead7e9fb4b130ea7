"""Which labels of a hit have to do with the query."""

from __future__ import annotations

from collections.abc import Collection

from rmsh.features.bag_of_words import words_of

__all__ = ["labels_in_text", "stem"]


def stem(word: str) -> str:
    """A word without the endings of the English plural: enough to see that two dogs have to do with a dog.

    Example:
        >>> [stem(word) for word in ("dogs", "cherries", "buses", "bus", "glass")]
        ['dog', 'cherry', 'bus', 'bus', 'glass']
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def labels_in_text(labels: Collection[str], text: str) -> set[str]:
    """The labels all of whose words are in a text.

    Example:
        >>> sorted(labels_in_text(["dog", "traffic light", "cat"], "Two dogs at traffic lights"))
        ['dog', 'traffic light']
    """
    known = {stem(word) for word in words_of(text)}
    return {label for label in labels if (words := {stem(word) for word in words_of(label)}) and words <= known}
