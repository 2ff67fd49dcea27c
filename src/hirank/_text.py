"""Numbers, counts and lists as text, for messages and for the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any


def plural(count: int, noun: str, plural_form: str = "") -> str:
    """Return the count with its noun.

    Examples
    --------
    >>> from hirank._text import plural
    >>> plural(1, "row"), plural(12345, "row"), plural(0, "entry", "entries")
    ('1 row', '12,345 rows', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else plural_form or noun + 's'}"


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


def number(value: float, *, even: bool = False) -> str:
    """Return a number with three significant digits and its whole part; an en dash for NaN.

    With `even`, trailing zeros are kept, so that the digits of a column are aligned.

    Examples
    --------
    >>> from hirank._text import number
    >>> [number(x) for x in (0.123456, 12.3456, 1234.56, -1.5e-7, 2.0, 1e12)]
    ['0.123', '12.3', '1235', '-1.5e-7', '2', '1e12']
    >>> number(0.5, even=True)
    '0.500'
    """
    if math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    if value and not 1e-4 <= abs(value) < 1e7:
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    if even:
        return f"{value:#.3g}"
    return f"{float(f'{value:.3g}'):.6f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    r"""Return a share of 1 in percent; an en dash for NaN.

    Examples
    --------
    >>> from hirank._text import percent
    >>> percent(0.1234), percent(1.0), percent(0.00001)
    ('12.3\xa0%', '100\xa0%', 'under 0.01\xa0%')
    """
    if math.isnan(share):
        return "\N{EN DASH}"
    if 0 < share < 1e-4:
        return "under 0.01\N{NO-BREAK SPACE}%"
    return f"{number(min(100 * share, 99.9) if share < 1 else 100 * share)}\N{NO-BREAK SPACE}%"


def duration(seconds: float) -> str:
    """Return seconds, from 100 on as minutes and hours.

    Examples
    --------
    >>> from hirank._text import duration
    >>> duration(0.1234), duration(59.96), duration(754), duration(7260)
    ('0.123 s', '60 s', '12 min 34 s', '2 h 1 min')
    """
    if seconds < 100:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
