"""Arguments of generators and patterns: checked, with an error that says what to give instead."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> None:
    """Raise if `value` is not a whole number from `least` to `most`."""
    fine = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
    if not fine or (most is not None and value > most):
        limit = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {limit}; got {value!r}.")


def check_number(
    name: str, value: Any, *, least: float | None = None, above: float | None = None
) -> None:
    """Raise if `value` is not a finite number in range."""
    fine = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if fine and (least is None or value >= least) and (above is None or value > above):
        return
    limit = f" of at least {least:g}" if least is not None else ""
    limit = f" above {above:g}" if above is not None else limit
    raise ValueError(f"{name} must be a finite number{limit}; got {value!r}.")


def check_rate(rate: Any) -> None:
    """Raise if `rate` is not a share of entries that can go missing: 0 <= rate < 1."""
    if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 <= float(rate) < 1:
        raise ValueError(
            f"rate must be a share of the entries, at least 0 and below 1; got {rate!r}."
        )


def check_shape(shape: Any) -> tuple[int, int]:
    """Numbers of samples and features; raise if `shape` is not that."""
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ValueError(
            "shape must be a tuple (samples, features), as X.shape of a table X; "
            f"got {type(shape).__name__}{f' of {len(shape)}' if isinstance(shape, tuple) else ''}."
        )
    check_count("The number of samples in shape", shape[0])
    check_count("The number of features in shape", shape[1])
    return int(shape[0]), int(shape[1])
