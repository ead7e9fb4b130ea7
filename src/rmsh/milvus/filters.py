"""Filters as Milvus expressions: every value becomes a string literal.

Words of a text are refused, because Milvus 2.3 cannot look them up.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rmsh.core.errors import InputError
from rmsh.index.filters import And, Filter, Id, Label, Not, Or


def literal(value: str | Sequence[str]) -> str:
    r"""A string or a list of strings as a Milvus literal: quotes, backslashes and control characters are escaped.

    Other characters are not escaped: Milvus does not read the surrogate pairs that JSON uses above 16 bits.

    Example:
        >>> print(literal('a "quoted" \\ and\nmore'))
        "a \"quoted\" \\ and\nmore"
        >>> literal(["a", "b"])
        '["a", "b"]'
    """
    return json.dumps(value, ensure_ascii=False)


def to_expression(condition: Filter) -> str:
    """Compile a filter to an expression, or raise InputError if it contains a condition on texts.

    Example:
        >>> to_expression(Label("dog") & ~Id("7"))
        '(array_contains(labels, "dog")) and (not (id == "7"))'
    """
    if isinstance(condition, Not):
        return f"not ({to_expression(condition.part)})"
    if isinstance(condition, (And, Or)):
        return f" {condition.word} ".join(f"({to_expression(part)})" for part in condition.parts)
    if isinstance(condition, Label):
        return f"array_contains(labels, {literal(condition.value)})"
    if isinstance(condition, Id):
        return f"id == {literal(condition.value)}"
    raise InputError(
        f"Got the filter {condition}; Milvus supports label= and id=, joined by and, or, not. For conditions on texts, "
        'also for -word and "a phrase" in a query, search the library\'s folder.'
    )


def both(*expressions: str) -> str:
    """Expressions joined by and; empty ones are left out.

    Example:
        >>> both("a == 1", "", "b == 2")
        '(a == 1) and (b == 2)'
    """
    return " and ".join(f"({expression})" for expression in expressions if expression)
