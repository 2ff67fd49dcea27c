"""Numbers and counts as people read them."""

from __future__ import annotations

import numpy as np


def number(value: float, *, even: bool = False) -> str:
    """Three significant digits, but never fewer than the whole part; an en dash for NaN.

    With `even`, zeros at the end stay, so that the digits of a column stand below each other.

    Examples
    --------
    >>> from hirank.report.words import number
    >>> [number(x) for x in (0.123456, 12.3456, 1234.56, -1.5e-7, 2.0, 1e12)]
    ['0.123', '12.3', '1235', '-1.5e-7', '2', '1e12']
    >>> number(0.5, even=True)
    '0.500'
    """
    if np.isnan(value):
        return "\N{EN DASH}"
    if np.isinf(value):
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
    r"""A share of 1 in percent.

    Examples
    --------
    >>> from hirank.report.words import percent
    >>> percent(0.1234), percent(1.0), percent(0.00001)
    ('12.3\xa0%', '100\xa0%', 'under 0.01\xa0%')
    """
    if 0 < share < 1e-4:
        return "under 0.01\N{NO-BREAK SPACE}%"
    return f"{number(min(100 * share, 99.9) if share < 1 else 100 * share)}\N{NO-BREAK SPACE}%"


def count(many: int, one: str, several: str | None = None) -> str:
    """So many of something.

    Examples
    --------
    >>> from hirank.report.words import count
    >>> count(1, "row"), count(12345, "row")
    ('1 row', '12,345 rows')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def duration(seconds: float) -> str:
    """Seconds, or minutes and hours where they are many.

    Examples
    --------
    >>> from hirank.report.words import duration
    >>> duration(0.1234), duration(59.96), duration(754), duration(7260)
    ('0.123 s', '60 s', '12 min 34 s', '2 h 1 min')
    """
    if seconds < 100:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
