"""Nested dicts and lists of arrays, numbers and strings as strict JSON and npy files, and back."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

MAX_DEPTH = 50
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""JSON has no names for these."""
RESERVED = ("array", "number")
"""Keys that no dict of a state may have: they mark an array, and a number that is not finite."""


def printable(text: object, length: int = 300) -> str:
    """Return text from a file or an error as one line that can be printed."""
    line = " ".join(str(text)[: 2 * length].split()).rstrip(".")
    return "".join(c if c.isprintable() else "?" for c in line[:length])


def to_json(value: Any, arrays: list[bytes] | None) -> bytes:
    """Return the JSON of a value; arrays are appended to `arrays`, an error if that is None."""
    text = json.dumps(_to_plain(value, arrays), allow_nan=False, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _to_plain(value: Any, arrays: list[bytes] | None) -> Any:
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str) or key in RESERVED]
        if wrong:
            raise TypeError(f"{wrong[0]!r} cannot be a key in a model file.")
        return {key: _to_plain(part, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(part, arrays) for part in value]
    if isinstance(value, np.ndarray) and arrays is not None:
        arrays.append(to_npy(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{value!r:.200} cannot be saved: only numbers, strings and arrays can.")


def from_json(data: bytes, array: Callable[[int], NDArray[Any]] | None) -> Any:
    """Return the value that `to_json` was given; `array` returns an array by its number.

    Raises ValueError where the JSON is not strict.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) < len(items):
            raise ValueError("a key occurs twice in the JSON")
        return dict(items)

    def number(text: str) -> float:
        if not math.isfinite(value := float(text)):
            raise ValueError(f"{text} is out of range")
        return value

    def constant(text: str) -> None:
        raise ValueError(f"{text} is not JSON")

    text = data.decode("utf-8", "surrogatepass")
    plain = json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_constant=constant)
    return _from_plain(plain, array)


def _from_plain(value: Any, array: Callable[[int], NDArray[Any]] | None, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return [_from_plain(part, array, depth + 1) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"number"} and value["number"] in [*NOT_FINITE]:
        return NOT_FINITE[value["number"]]
    if set(value) == {"array"} and type(value["array"]) is int and array is not None:
        return array(value["array"])
    if any(key in value for key in RESERVED):
        raise ValueError(f"{value!r:.80} must be an array or a number")
    return {key: _from_plain(part, array, depth + 1) for key, part in value.items()}


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
    shape, fortran, dtype = npy.read_array_header_1_0(file)
    kinds = [dtype[name] for name in dtype.names] if dtype.names else [dtype]
    if any(kind.kind not in "biuf" or kind.subdtype is not None for kind in kinds):
        raise ValueError(f"an array must consist of numbers; got {dtype!s:.80}")
    if len(data) - file.tell() != math.prod(shape) * dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape!s:.80} must have another size")
    if dtype == np.bool_ and np.frombuffer(data, np.uint8, offset=file.tell()).max(initial=0) > 1:
        raise ValueError("an array of bool must consist of 0 and 1")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")
