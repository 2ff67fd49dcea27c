"""States of many records of one type as one: an array for each field, not for each record.

A file has a part for each array, which takes longer than its bytes where arrays are small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

STACKED, EACH = "stacked", "each"
"""Keys of arrays that are stored together, and of values that differ in kind or number."""


def stack(states: Sequence[Any]) -> Any:
    """Return nested dicts and lists of the same form as one, in which each leaf has all values.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.persistence.stacked import stack, unstack
    >>> states = [{"a": np.zeros(2), "b": 1}, {"a": np.ones(3), "b": 2}]
    >>> together = stack(states)
    >>> together["a"]["stacked"], together["b"]
    (array([0., 0., 1., 1., 1.]), {'each': [1, 2]})
    >>> unstack(together, 2)[1]
    {'a': array([1., 1., 1.]), 'b': 2}
    """
    first = states[0]
    if all(isinstance(one, dict) and one.keys() == first.keys() for one in states):
        return {key: stack([one[key] for one in states]) for key in first}
    if all(isinstance(one, list) and len(one) == len(first) for one in states):
        return [stack(parts) for parts in zip(*states, strict=True)]
    arrays = [one for one in states if isinstance(one, np.ndarray)]
    if len(arrays) == len(states) and len({array.dtype for array in arrays}) == 1:
        forms = [[list(array.shape), _order(array)] for array in arrays]
        same = all(form == forms[0] for form in forms)
        flat = np.concatenate([array.ravel(_order(array)) for array in arrays])
        return {STACKED: flat, "forms": forms[:1] if same else forms}
    return {EACH: list(states)}


def unstack(state: Any, n: int) -> list[Any]:
    """Return the n states that `stack` was given; raise ValueError if it is not made of n."""
    if isinstance(state, Mapping) and set(state) == {EACH}:
        if not isinstance(state[EACH], list) or len(state[EACH]) != n:
            raise ValueError(f"there must be {n} values of each")
        return list(state[EACH])
    if isinstance(state, Mapping) and set(state) == {STACKED, "forms"}:
        return _split(state[STACKED], state["forms"], n)
    if isinstance(state, Mapping):
        parts = {key: unstack(part, n) for key, part in state.items()}
        return [{key: values[i] for key, values in parts.items()} for i in range(n)]
    if isinstance(state, list):
        columns = [unstack(part, n) for part in state]
        return [[values[i] for values in columns] for i in range(n)]
    raise ValueError(f"values of {n} records must be stacked; got {state!r:.40}")


def _split(flat: Any, forms: Any, n: int) -> list[NDArray[Any]]:
    """Return n arrays, each with its shape and order, from their values in a row."""
    fits = isinstance(flat, np.ndarray) and flat.ndim == 1 and isinstance(forms, list)
    if not fits or len(forms) not in (1, n):
        raise ValueError(f"there must be 1 or {n} forms of arrays that are stacked")
    forms = forms * n if len(forms) == 1 else forms
    if not all(_is_form(form) for form in forms):
        raise ValueError("the form of a stacked array must be its shape and C or F")
    sizes = [math.prod(shape) for shape, _ in forms]
    if sum(sizes) != len(flat):
        raise ValueError("stacked arrays must have the sizes of their shapes")
    ends = np.cumsum(sizes).tolist()
    return [
        flat[end - size : end].reshape(shape, order=order)
        for end, size, (shape, order) in zip(ends, sizes, forms, strict=True)
    ]


def _order(array: NDArray[Any]) -> Any:
    """Return the order of an array in memory: products round differently in another one."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _is_form(form: Any) -> bool:
    if not isinstance(form, list) or len(form) != 2 or form[1] not in ("C", "F"):
        return False
    shape = form[0]
    return isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
