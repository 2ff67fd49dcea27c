"""Whole numbers and double precision: which values pass from one to the other unchanged."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray

EXACT = 2**53
"""Up to here double precision holds every whole number."""


def are_whole(values: Array) -> BoolArray:
    """Return where a value is a whole number of at most 64 bits."""
    with np.errstate(invalid="ignore"):
        return np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < 2.0**64)


def fit_integers(values: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether these are whole numbers that the type can hold."""
    limits = np.iinfo(dtype)
    # One more than the maximum is a power of two: as a double, the maximum itself may be rounded.
    in_range = (values >= float(limits.min)) & (values < float(limits.max + 1))
    return bool((are_whole(values) & in_range).all())


def find_rounded(values: NDArray[Any]) -> BoolArray:
    """Return where a number of any type changes in double precision; NaN and texts do not."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind in "iu" and size == 8 and values.size:
        if int(values.max()) > EXACT or int(values.min()) < -EXACT:
            return _exceed_53_bits(values)
    elif kind == "f" and size > 8:
        return np.asarray((values.astype(np.float64) != values) & ~np.isnan(values))
    elif kind == "O":
        found = [_is_rounded(value) for value in values.ravel()]
        return np.array(found, dtype=bool).reshape(values.shape)
    return np.zeros(values.shape, dtype=bool)


def _exceed_53_bits(values: NDArray[Any]) -> BoolArray:
    """Return where more than 53 bits are between the first and the last that is set."""
    size = np.abs(values).astype(np.uint64)  # that of the least int64 wraps around to itself
    lowest = size & (~size + np.uint64(1))
    return np.asarray(size >> np.uint64(53) >= np.maximum(lowest, np.uint64(1)))


def _is_rounded(value: Any) -> bool:
    if not isinstance(value, int | np.integer | Decimal | Fraction) or value != value:
        return False
    try:
        return bool(float(value) != value)
    except OverflowError:
        return True
