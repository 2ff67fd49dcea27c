"""Nested dicts and lists of arrays, numbers and strings as strict JSON and npy files, and back."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""JSON has no numbers for these: ``{"number": "nan"}`` stands for NaN."""
MAX_NPY_HEADER = 1000
"""Characters that describe an array, parsed as a Python literal; hirank writes up to 200."""


def to_json(value: Any, arrays: list[bytes] | None = None) -> bytes:
    """Return the JSON of a value; the npy files of its arrays are appended to `arrays`.

    Raise TypeError if the value contains anything else, also arrays if `arrays` is None.
    """
    text = json.dumps(_to_plain(value, arrays), allow_nan=False, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _to_plain(value: Any, arrays: list[bytes] | None) -> Any:
    if isinstance(value, dict):
        return {key: _to_plain(part, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(part, arrays) for part in value]
    if isinstance(value, np.ndarray) and arrays is not None:
        arrays.append(to_npy(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def from_json(data: bytes, arrays: dict[int, bytes] | None = None) -> Any:
    """Return the value that `to_json` was given; npy files that it contains leave `arrays`."""

    def restore(found: dict[str, Any]) -> Any:
        [(key, value), *rest] = [*found.items()] or [("", None)]
        if key == "number" and not rest and value in [*NOT_FINITE]:
            return NOT_FINITE[value]
        if key != "array" or rest or arrays is None:
            return found
        if type(value) is not int or value not in arrays:
            raise ValueError(f"array {value!r:.40} does not exist, or is used twice")
        return from_npy(arrays.pop(value))

    return json.loads(data.decode("utf-8", "surrogatepass"), object_hook=restore)


def to_npy(array: NDArray[Any]) -> bytes:
    """Return an array as a file of NumPy's format; C or Fortran order is kept."""
    file = io.BytesIO()
    npy.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def from_npy(data: bytes) -> NDArray[Any]:
    """Return the array of a file of NumPy's format, as a view; raise ValueError if it is not one.

    The size is checked before anything is allocated.
    """
    file = io.BytesIO(data)
    if npy.read_magic(file) != (1, 0):
        raise ValueError("an array must have version 1.0 of the npy format")
    shape, fortran, dtype = npy.read_array_header_1_0(file, max_header_size=MAX_NPY_HEADER)
    kinds = [dtype[name] for name in dtype.names] if dtype.names else [dtype]
    if any(kind.kind not in "biuf" or kind.subdtype is not None for kind in kinds):
        raise ValueError(f"an array must consist of numbers; got {dtype!s:.80}")
    if len(data) - file.tell() != math.prod(shape) * dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"an array does not have the size of its shape {shape!s:.80}")
    if dtype == np.bool_ and np.frombuffer(data, np.uint8, offset=file.tell()).max(initial=0) > 1:
        raise ValueError("an array of bool must consist of 0 and 1")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")
