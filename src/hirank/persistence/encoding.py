"""Nested dicts and lists of arrays, numbers and words as strict JSON and plain bytes, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALARS = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
"""Types of numbers that arrays in a file may have."""
MOST_AXES = 8
MOST_DEPTH = 50
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""JSON has no words for these."""
RESERVED = ("array", "number")
"""Keys that no dict of a state may have: they stand for an array, and for what JSON can't say."""

Arrays = Callable[[int, "np.dtype[Any]", tuple[int, ...]], NDArray[Any]]
"""The array of a number, as stored: with its axes from slow to fast."""


class ModelFileError(ValueError):
    """A file that is no model, or a damaged one, or one of a later version."""


def said(what: object, most: int = 300) -> str:
    """What an error says, or another thing out of a file, on one line that can be printed."""
    line = " ".join(str(what)[: 2 * most].split()).rstrip(".")
    return "".join(c if c.isprintable() else "?" for c in line[:most])


def to_json(value: Any, arrays: list[bytes] | None) -> bytes:
    """JSON of a value; arrays are appended to `arrays` as npy, or an error if that is None."""
    text = json.dumps(_plain(value, arrays), allow_nan=False, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def parsed(data: bytes) -> Any:
    """What JSON says; raises ValueError where it is not strict."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) < len(items):
            raise ValueError("a key stands twice in its JSON")
        return dict(items)

    def number(text: str) -> float:
        if not math.isfinite(value := float(text)):
            raise ValueError(f"{text} is no number that can be held")
        return value

    def constant(text: str) -> None:
        raise ValueError(f"{text} is no JSON")

    text = data.decode("utf-8", "surrogatepass")
    return json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_constant=constant)


def whole(value: Any, arrays: Arrays | None, depth: int = 0) -> Any:
    """What :func:`to_json` was given, from parsed JSON and the arrays that it refers to."""
    if depth > MOST_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(value, list):
        return [whole(part, arrays, depth + 1) for part in value]
    if not isinstance(value, dict):
        return value
    if "number" in value:
        if set(value) != {"number"} or value["number"] not in [*NOT_FINITE]:
            raise ValueError(f"{value!r:.80} stands for no number")
        return NOT_FINITE[value["number"]]
    if "array" in value:
        return _array(value, arrays)
    return {key: whole(part, arrays, depth + 1) for key, part in value.items()}


def npy_bytes(array: NDArray[Any]) -> bytes:
    """A contiguous array as a file of NumPy's format 1.0."""
    return _npy_header(array.dtype, array.shape) + array.tobytes()


def npy_view(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The array that npy bytes hold, if they are just as :func:`npy_bytes` makes them.

    The header is compared, not evaluated.
    """
    header = _npy_header(dtype, shape)
    if not data.startswith(header):
        raise ValueError(f"an array should be {dtype} of shape {shape}, and is something else")
    if len(data) - len(header) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {shape} has {len(data) - len(header)} bytes")
    if dtype == np.bool_ and np.frombuffer(data, np.uint8, offset=len(header)).max(initial=0) > 1:
        raise ValueError("an array of bool holds something else")
    return np.frombuffer(data, dtype, offset=len(header)).reshape(shape)


def _plain(value: Any, arrays: list[bytes] | None) -> Any:
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str) or key in RESERVED]
        if wrong:
            raise TypeError(f"{wrong[0]!r} can't be a name in a model file.")
        return {key: _plain(part, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, arrays) for part in value]
    if isinstance(value, np.ndarray) and arrays is not None:
        return _reference(value, arrays)
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{value!r:.200} can't be saved: only numbers, words and arrays can.")


def _reference(array: NDArray[Any], arrays: list[bytes]) -> dict[str, Any]:
    """Append an array, and say where it is.

    Products of matrices round differently if they lie in memory differently. So their axes are
    stored from slow to fast, and which is which is kept.
    """
    axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    stored = np.ascontiguousarray(array.transpose(axes)).reshape([array.shape[a] for a in axes])
    stored = stored.astype(stored.dtype.newbyteorder("<"), copy=False)
    descr = _descr(stored.dtype)
    _dtype(descr)  # raises if there could be no way back
    arrays.append(npy_bytes(stored))
    where = {"array": len(arrays) - 1, "dtype": descr, "shape": list(stored.shape)}
    return where if axes == sorted(axes) else {**where, "axes": axes}


def _array(value: dict[str, Any], arrays: Arrays | None) -> NDArray[Any]:
    number, shape = value.get("array"), value.get("shape")
    known = set(value) - {"axes"} == {"array", "dtype", "shape"}
    if arrays is None or not known or type(number) is not int or not isinstance(shape, list):
        raise ValueError(f"{value!r:.80} stands for no array")
    if len(shape) > MOST_AXES or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise ValueError(f"there is no array of shape {shape!r:.80}")
    dtype = _dtype(value.get("dtype"))
    axes = value.get("axes", [*range(len(shape))])
    if not isinstance(axes, list) or any(type(a) is not int for a in axes):
        raise ValueError(f"{axes!r:.80} are no axes")
    if sorted(axes) != [*range(len(shape))]:
        raise ValueError(f"{axes!r:.80} are not the axes of an array of shape {shape}")
    array = arrays(number, dtype, tuple(shape))
    array = array.astype(dtype.newbyteorder("="), copy=False)
    return array.transpose([axes.index(a) for a in range(len(axes))])


def _descr(dtype: np.dtype[Any]) -> Any:
    """The type of an array's entries, in JSON: a word, or names and words of its columns."""
    if dtype.names is None:
        return dtype.str
    return [[name, dtype[name].str] for name in dtype.names]


def _dtype(descr: Any) -> np.dtype[Any]:
    if isinstance(descr, str) and descr in SCALARS:
        return np.dtype(descr)
    if not isinstance(descr, list) or not 0 < len(descr) <= 20:
        raise ValueError(f"arrays of {descr!r:.80} can't be kept in a model file")
    names = []
    for column in descr:
        fine = isinstance(column, list) and len(column) == 2 and column[1] in SCALARS
        if not fine or not isinstance(column[0], str) or not column[0].isidentifier():
            raise ValueError(f"arrays of {descr!r:.80} can't be kept in a model file")
        names.append(column[0])
    if len(set(names)) < len(names):
        raise ValueError(f"arrays of {descr!r:.80} have two columns of the same name")
    return np.dtype([(name, scalar) for name, scalar in descr])


def _npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """As NumPy writes it, but the same in all versions."""
    columns = _descr(dtype)
    descr = repr(columns if isinstance(columns, str) else [tuple(column) for column in columns])
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    padding = " " * (-(10 + len(text) + 1) % 64)
    line = (text + padding + "\n").encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line
