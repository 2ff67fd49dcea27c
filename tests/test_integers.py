from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hirank._integers import are_whole, find_rounded, fit_integers


def test_whole_numbers_have_at_most_64_bits():
    values = np.array([1.0, 1.5, np.nan, np.inf, 2.0**60, 2.0**64, -3.0])
    assert are_whole(values).tolist() == [True, False, False, False, True, False, True]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_integers_fit_up_to_the_limits_of_the_type(dtype):
    limits = np.iinfo(dtype)
    above = float(limits.max + 1)
    assert fit_integers(np.array([float(limits.min), np.nextafter(above, 0) // 1]), np.dtype(dtype))
    assert not fit_integers(np.array([above]), np.dtype(dtype))
    assert not fit_integers(np.array([float(limits.min) * 2 - 2]), np.dtype(dtype))


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(50, 62).map(lambda k: 2**k)))
def test_rounded_integers_are_those_that_python_finds(values):
    expected = [int(float(value)) != value for value in values]
    assert find_rounded(np.array(values, dtype=np.int64)).tolist() == expected
    assert find_rounded(np.array([*values, None], dtype=object)).tolist() == [*expected, False]


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_rounded_unsigned_integers_are_those_that_python_finds(values):
    expected = [int(float(value)) != value for value in values]
    assert find_rounded(np.array(values, dtype=np.uint64)).tolist() == expected


def test_rounded_objects():
    values = [Decimal("0.5"), Decimal("0.1"), Fraction(1, 3), 10**400, "x", None, float("nan"), 0.1]
    found = find_rounded(np.array(values, dtype=object))
    assert found.tolist() == [False, True, True, True, False, False, False, False]
