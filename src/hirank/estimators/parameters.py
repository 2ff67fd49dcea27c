"""Checks of constructor arguments: what is wrong, and what to give instead."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise if `value` is none of the choices."""
    choices = sorted(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None
) -> None:
    """Raise if `value` is not a finite number in range."""
    fine = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if fine and (above is None or value > above) and (least is None or value >= least):
        return
    limit = f" above {above:g}" if above is not None else f" of at least {least:g}"
    raise ValueError(f"{name} must be a number{limit}; got {value!r}.")


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """Raise if `value` is not a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
