"""Products with a triangular matrix, in place and without the global interpreter lock.

The codes are two such products (see :mod:`hirank.core.objective`). As full matrix products they
would cost twice as much; SciPy's own wrapper of BLAS ``trmm`` holds the lock, so two threads cannot
run it at once. SciPy exports the routine's address for compiled callers
(``scipy.linalg.cython_blas``); calling that through ctypes releases the lock. Times are in
docs/notes/numerics.md.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, lapack

from hirank._typing import Array

MAX_LAPACK = 64
"""Size up to which LAPACK inverts a triangle."""


def _load_routine(name: str) -> Callable[..., None]:
    """Return a BLAS routine of SciPy as a function of eleven pointers."""
    capsule = cython_blas.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)
    return prototype(get_pointer(capsule, get_name(capsule)))


_TRMM: dict[np.dtype[Any], Callable[..., None]] = {
    np.dtype(np.float64): _load_routine("dtrmm"),
    np.dtype(np.float32): _load_routine("strmm"),
}


def inverse_lower(L: Array) -> Array:
    """Return the inverse of a lower triangular matrix, r x r.

    The matrix is split in halves, so that most of the work is matrix products: LAPACK alone takes
    0.57 ms at r = 248, this 0.35 ms (docs/notes/numerics.md).
    """
    r = len(L)
    if r <= MAX_LAPACK:
        return np.ascontiguousarray(lapack.dtrtri(L, lower=1)[0])
    h = r // 2
    R = np.zeros_like(L)
    R[:h, :h] = inverse_lower(L[:h, :h])
    R[h:, h:] = inverse_lower(L[h:, h:])
    R[h:, :h] = -R[h:, h:] @ (L[h:, :h] @ R[:h, :h])
    return R


def times_lower(B: Array, T: Array, *, transposed: bool) -> None:
    """Replace B by B T, or by B T' if `transposed`.

    B is n x r and T is r x r, lower triangular (entries above its diagonal are not read); both are
    C-contiguous and of one dtype. B may be a stack, ... x n x r: each of its blocks is then
    multiplied on its own.
    """
    if B.ndim > 2:
        for block in B:
            times_lower(block, T, transposed=transposed)
        return
    n, r = B.shape
    if n == 0 or r == 0:
        return
    if not (B.flags.c_contiguous and T.flags.c_contiguous and B.dtype == T.dtype):
        raise ValueError("B and T must be C-contiguous and of one dtype.")
    # BLAS reads columns: it sees B' (r x n) and T' (upper). B T = (T' B')' and B T' = (T B')'.
    one = np.ones(1, B.dtype)
    size, rows = ctypes.c_int(r), ctypes.c_int(n)
    at_size, at_rows = ctypes.addressof(size), ctypes.addressof(rows)
    flip = b"T" if transposed else b"N"
    _TRMM[B.dtype](
        *(b"L", b"U", flip, b"N", at_size, at_rows),
        *(one.ctypes.data, T.ctypes.data, at_size, B.ctypes.data, at_size),
    )
