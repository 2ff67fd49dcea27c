"""Functions that Numba compiles at their first call, where it is installed.

One implementation, two ways to run it: what is marked ``@compiled`` is written in the part of
Python and NumPy that Numba understands, and runs as it stands without Numba. Numba is imported at
the first call and not before, because that takes a second; the machine code is kept on disk for
later processes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from types import FunctionType, ModuleType
from typing import Any


class Compiled:
    """A function with its two forms; call it for the faster one that this machine can run.

    Compiled functions may call each other. They should live in one module: the stored machine code
    of a function is out of date when its own file changes, not when that of a callee does.
    """

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self.fastest(*arguments)

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """Return the Python function, which calls the plain form of others."""
        return self._with_callees("plain")

    @cached_property
    def fastest(self) -> Callable[..., Any]:
        """Return the compiled function, which calls compiled ones; the plain one without Numba."""
        numba = _numba()
        if numba is None:
            return self.plain
        function = self._with_callees("fastest")
        options = {"nogil": True, "error_model": "numpy"}
        try:
            return numba.njit(function, cache=True, **options)
        except RuntimeError:  # no directory is writable for the machine code
            return numba.njit(function, **options)

    def _with_callees(self, form: str) -> FunctionType:
        """Return the function with one form of the compiled functions that it names."""
        own = self._function
        namespace = dict(own.__globals__)
        for name in own.__code__.co_names:
            if isinstance(namespace.get(name), Compiled):
                namespace[name] = getattr(namespace[name], form)
        # The same code object: Numba's cache knows a function by its file, name and first line.
        return FunctionType(own.__code__, namespace, own.__name__, own.__defaults__)


def compiled(function: Callable[..., Any]) -> Compiled:
    """Mark a module-level function, called with positional arguments, for compilation.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.optim.algorithm2_steps import spectral_norm
    >>> round(float(spectral_norm(np.diag([1.0, 3.0]))), 4)  # compiled, where Numba is installed
    3.0
    >>> round(float(spectral_norm.plain(np.diag([1.0, 3.0]))), 4)
    3.0
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"Only a function written in Python can be compiled, got {function!r}.")
    return Compiled(function)


@cache
def _numba() -> ModuleType | None:
    try:
        import numba
    except Exception:  # not installed, or it does not support the installed NumPy or Python
        return None
    return numba
