"""A filter as an expression of Milvus: every value is a string literal, never part of the expression.

What a server of 2.3 cannot look up, such as words of a text, is refused in one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from rmsh.core.errors import InputError
from rmsh.index.filters import And, Filter, Id, Label, Not, Or


def literal(value: str) -> str:
    r"""A string as a literal of Milvus: quotes, backslashes and control characters are escaped as in JSON.

    Other characters stand as they are: JSON would write those beyond 16 bits as two, which Milvus does not read.

    Example:
        >>> print(literal('a "quoted" \\ and\nmore'))
        "a \"quoted\" \\ and\nmore"
    """
    return json.dumps(value, ensure_ascii=False)


def to_expression(condition: Filter) -> str:
    """Compile a filter.

    Raises:
        InputError: it asks for words of a text, or it is no filter.

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
        f"The filter {condition} was given; a collection of Milvus is filtered by label= and id=, joined by and, or, "
        "not: search words of texts in the library's folder."
    )


def keys_in(keys: Iterable[int], *, but: bool = False) -> str:
    """An expression for entities of these keys, or for all others.

    Example:
        >>> keys_in([3, 4]), keys_in([3], but=True)
        ('key in [3,4]', 'key not in [3]')
    """
    return f"key {'not in' if but else 'in'} [{','.join(map(str, keys))}]"


def both(*expressions: str) -> str:
    """Expressions joined by and; empty ones are left out.

    Example:
        >>> both("a == 1", "", "b == 2"), both("", "b == 2")
        ('(a == 1) and (b == 2)', 'b == 2')
    """
    given = [expression for expression in expressions if expression]
    return given[0] if len(given) == 1 else " and ".join(f"({expression})" for expression in given)
