"""Comparison of the compiled core with the NumPy code, for tests of functions that use it."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hirank import _compiled

COMPILED = _compiled.available()
"""Instruction sets that can be tested on this machine; empty without a compiled core."""


def outcome(function: Callable[[], Any], instruction_set: str) -> Any:
    """Return what a function returns, or the exception that it raises, on one instruction set."""
    with _compiled.using(instruction_set):
        try:
            return function()
        except Exception as error:
            return error


def assert_as_numpy(function: Callable[[], Any], **tolerance: float) -> None:
    """Assert that a function does the same on each instruction set as without the compiled core.

    Results are arrays, numbers or nested tuples, lists and records of them; they are compared with
    `rtol` and `atol` (numpy.testing.assert_allclose). NaN and infinities must be at the same
    places. Exceptions must be of the same class and have the same message. Random generators
    belong inside the function, so that each call starts from the same state.
    """
    expected = outcome(function, _compiled.OFF)
    for name in COMPILED:
        assert_close(outcome(function, name), expected, name, **tolerance)


def assert_close(got: Any, expected: Any, where: str = "", **tolerance: float) -> None:
    """Assert that two results are equal within a tolerance; see `assert_as_numpy`."""
    if isinstance(expected, Exception) or isinstance(got, Exception):
        assert (type(got), str(got)) == (type(expected), str(expected)), where
    elif isinstance(expected, tuple | list):
        assert len(got) == len(expected), where
        for i, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_close(one, other, f"{where}[{i}]", **tolerance)
    elif hasattr(expected, "__dataclass_fields__"):
        for name in expected.__dataclass_fields__:
            assert_close(
                getattr(got, name), getattr(expected, name), f"{where}.{name}", **tolerance
            )
    elif isinstance(expected, float | np.floating | np.ndarray):
        np.testing.assert_allclose(got, expected, err_msg=where, **tolerance)
        assert np.asarray(got).dtype == np.asarray(expected).dtype, where
    else:
        assert got == expected, where


def layouts(A: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array with the same values in other layouts: all must give the same bits."""
    yield np.asfortranarray(A)
    spread = np.zeros(tuple(2 * size for size in A.shape), A.dtype)
    spread[tuple(slice(None, None, 2) for _ in A.shape)] = A
    yield spread[tuple(slice(None, None, 2) for _ in A.shape)]
    yield A[::-1].copy()[::-1]
    fixed = A.copy()
    fixed.flags.writeable = False
    yield fixed


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 30, max_columns: int = 9) -> tuple[Any, Any]:
    """Draw a table of standard normal values and which of them are observed, n x m.

    There may be no row, one column, rows or columns without values, and nothing missing.
    """
    n, m = draw(st.integers(0, max_rows)), draw(st.integers(1, max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.standard_normal((n, m))
    observed = rng.random((n, m)) >= draw(st.sampled_from([0.0, 0.2, 0.5, 0.9]))
    if n and draw(st.booleans()):
        observed[rng.integers(n)] = False
    if draw(st.booleans()):
        observed[:, rng.integers(m)] = False
    return X, observed


EXTREMES = (5e-324, 1e-310, -1e-200, 1e150, -1e300, np.inf, -np.inf, np.nan)
"""Numbers that overflow, underflow or are not finite, to be put into a table."""
