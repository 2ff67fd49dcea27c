"""Numbers and lists in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def plural(count: int, noun: str, plural_form: str = "") -> str:
    """Return the count with its noun.

    Examples
    --------
    >>> from hirank._text import plural
    >>> plural(1, "row"), plural(2, "row"), plural(0, "entry", "entries")
    ('1 row', '2 rows', '0 entries')
    """
    return f"{count} {noun if count == 1 else plural_form or noun + 's'}"


def abbreviated(items: Sequence[Any], shown: int = 5) -> str:
    """Return the first items, separated by commas.

    Examples
    --------
    >>> from hirank._text import abbreviated
    >>> abbreviated(range(3)), abbreviated("abcdefg", shown=2)
    ('0, 1, 2', 'a, b, ...')
    """
    return ", ".join(map(str, items[:shown])) + (", ..." if len(items) > shown else "")


def alternatives(items: Iterable[Any]) -> str:
    """Return the representations of items as a list that ends with "or".

    Examples
    --------
    >>> from hirank._text import alternatives
    >>> alternatives(["a", "b", "c"])
    "'a', 'b' or 'c'"
    """
    *first, last = map(repr, items)
    return f"{', '.join(first)} or {last}" if first else last
