"""Imputation of many rows with a stack, within the time limit of a fit."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.models.stacking import Stack
from hirank.optim.trace import Monitor

BLOCK = 960
"""Rows between two looks at the clock. They are imputed on their own, so results do not depend on
it."""
MARGIN = 1.3
"""Factor by which a row may take longer than those before."""


def complete_in_time(
    stack: Stack, X: Array, observed: BoolArray, monitor: Monitor
) -> tuple[Array, Array]:
    """Return rows, n x v, imputed, and how far the families of the stack are apart.

    If the time limit does not leave enough time for all rows, the last ones are imputed by the
    model of the stack that takes the least.
    """
    if monitor.max_time is None:
        return _complete(stack, X, observed)
    n, cheapest = len(X), _cheapest(stack)
    began = perf_counter()
    cheapest.complete(X[:BLOCK], observed[:BLOCK])
    pace = (perf_counter() - began) / min(BLOCK, n)  # seconds per row of the cheapest model
    filled, spread = X.copy(), np.zeros(X.shape)
    seconds = 0.0  # of the last block
    for begin in range(0, n, BLOCK):
        left = monitor.max_time - monitor.seconds
        if left < MARGIN * (seconds + pace * (n - begin)):
            monitor.shorten()
            filled[begin:], spread[begin:] = _complete(cheapest, X[begin:], observed[begin:])
            break
        rows, began = slice(begin, begin + BLOCK), perf_counter()
        filled[rows], spread[rows] = _complete(stack, X[rows], observed[rows])
        seconds = perf_counter() - began
    return filled, spread


def _cheapest(stack: Stack) -> Stack:
    """Return the model that takes the least time for a row, as a stack of its own."""
    number = int(np.argmin([model.work for model in stack.models]))
    return Stack((stack.models[number],), np.ones(1), (stack.families[number],), stack.bounds)


def _complete(stack: Stack, X: Array, observed: BoolArray) -> tuple[Array, Array]:
    each = stack.complete_each(X, observed)
    return stack.average(each, X, observed), stack.spread(each)
