"""Rules for the values of parameters; every error states what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from hirank._text import alternatives
from hirank.exceptions import ParameterError

Rule: TypeAlias = Callable[[str, Any], None]
"""Raises ParameterError if the value of the named parameter cannot be used."""


def count(least: int = 1, most: int | None = None) -> Rule:
    """Require an integer from `least` to `most`."""

    def rule(name: str, value: Any) -> None:
        fine = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
        if not fine or (most is not None and value > most):
            limit = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise ParameterError(name, f"must be an integer {limit}; got {value!r}.")

    return rule


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Rule:
    """Require a finite number in range."""

    def rule(name: str, value: Any) -> None:
        fine = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
        in_range = fine and (above is None or value > above) and (least is None or value >= least)
        if in_range and (most is None or value <= most) and (below is None or value < below):
            return
        limit = f" above {above:g}" if above is not None else f" of at least {least:g}"
        limit += "" if most is None else f" and at most {most:g}"
        limit += "" if below is None else f" and below {below:g}"
        raise ParameterError(name, f"must be a number{limit}; got {value!r}.")

    return rule


def choice(*options: str) -> Rule:
    """Require one of the options."""

    def rule(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in options:
            raise ParameterError(name, f"must be {alternatives(options)}; got {value!r}.")

    return rule


def flag(name: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name, f"must be True or False; got {value!r}.")


def optional(rule: Rule, default: str | None = None) -> Rule:
    """Allow `default`, which is None or a word such as "auto", besides what `rule` allows."""

    def either(name: str, value: Any) -> None:
        if value is default or (isinstance(value, str) and value == default):
            return
        try:
            rule(name, value)
        except ParameterError as error:
            problem = error.problem.replace("must be", f"must be {default!r} or", 1)
            raise ParameterError(name, problem) from None

    return either


def check_counts(**values: Any) -> None:
    """Raise ParameterError unless all values are positive integers."""
    for name, value in values.items():
        count()(name, value)


AUTO_COUNT = optional(count(), "auto")
AUTO_NUMBER = optional(number(above=0), "auto")
