"""Records as nested dicts and lists of arrays, numbers and strings, and back by declared type.

A record declares its fields: arrays by ``Annotated[Array, Shape("n v")]``, other records by their
type, and what must hold between the fields by a method ``check``. A state is decoded top down from
the type of the whole, so that nothing in a file names what is built.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hirank._typing import SavedAs, Shape
from hirank.kernels import BuiltinKernel, Kernel
from hirank.persistence.stacked import stack, unstack

MAX_COUNT = 2**53
TYPE, ITEMS = "type", "items"
"""Keys of the name of a record, and of what a dict or a list contains. A tuple is a plain list."""


def encode(value: Any) -> Any:
    """Return a record or a parameter as nested dicts and lists. Arrays are copied.

    Examples
    --------
    >>> from hirank.kernels import RBF
    >>> from hirank.persistence.record import decode, encode
    >>> encode(RBF(2.0))
    {'type': 'RBF', 'sigma': 2.0}
    >>> decode(RBF, encode(RBF(2.0)))
    RBF(sigma=2.0)
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufV":
        return np.array(value, order="K")  # products round differently in another layout
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Kernel) and type(value) not in get_args(BuiltinKernel):
        allowed = " or ".join(kind.__name__ for kind in get_args(BuiltinKernel))
        raise TypeError(f"Kernel {value!r} cannot be saved: it must be one of hirank's, {allowed}.")
    if isinstance(value, np.generic):
        return encode(value.item())
    if value is None or isinstance(value, bool | int | float | str):
        return value
    names = _field_names(type(value))
    if names is not None:
        parts = {name: encode(getattr(value, name)) for name in names}
        return {TYPE: type(value).__name__, **parts}
    return _encode_collection(value)


def _encode_collection(value: Any) -> Any:
    if isinstance(value, tuple):
        return [encode(part) for part in value]
    if isinstance(value, Mapping):
        parts = [encode(part) for part in value.values()]
        if parts and all(is_dataclass(part) for part in value.values()):
            return {TYPE: "stacked", "keys": [encode(key) for key in value], ITEMS: stack(parts)}
        return {
            TYPE: "dict",
            ITEMS: [[encode(k), part] for k, part in zip(value, parts, strict=True)],
        }
    if isinstance(value, Collection) and not isinstance(value, bytes):
        return {TYPE: "list", ITEMS: [encode(part) for part in value]}
    raise TypeError(f"{value!r} cannot be saved: only numbers, strings, arrays and kernels can.")


def decode(kind: Any, state: Any, path: str = "model", sizes: dict[str, int] | None = None) -> Any:
    """Return a value of the declared type `kind`; raise ValueError if the state is not one.

    `path` names the place in messages; `sizes` are the lengths of axes by name in a record.
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return _decode_parameter(state, path)
    if origin is Annotated:
        return _decode_annotated(args[0], args[1], state, path, {} if sizes is None else sizes)
    if origin in (Union, UnionType):
        return _decode_union(args, state, path, sizes)
    if origin is tuple:
        parts = enumerate(_items(state, path))
        return tuple(decode(args[0], part, f"{path}[{i}]") for i, part in parts)
    if origin is dict:
        if not isinstance(state, Mapping) or state.get(TYPE) not in ("dict", "stacked"):
            raise ValueError(f"{path}: must be a dict; got {state!r:.40}")
        return _decode_dict(args[1], _unstacked(state, path), path)
    if _field_names(kind) is not None:
        return _decode_record(kind, state, path)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(state)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return _decode_scalar(kind, state, path)


def _field_names(kind: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a record; None if `kind` is not a record."""
    if is_dataclass(kind):
        return tuple(f.name for f in fields(kind))
    return getattr(kind, "_fields", None)  # of a named tuple


@lru_cache  # a file may have thousands of records of one kind
def _field_types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _decode_record(kind: Any, state: Any, path: str) -> Any:
    names = _field_names(kind) or ()
    fits = isinstance(state, Mapping) and set(state) == {TYPE, *names}
    if not fits or state[TYPE] != kind.__name__:
        raise ValueError(f"{path}: must be a {kind.__name__} with the fields {', '.join(names)}")
    sizes: dict[str, int] = {}
    hints = _field_types(kind)
    parts = {name: decode(hints[name], state[name], f"{path}.{name}", sizes) for name in names}
    try:
        record = kind(**parts)
        if hasattr(record, "check"):
            record.check()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return record


def _decode_union(kinds: tuple[Any, ...], state: Any, path: str, sizes: Any) -> Any:
    if state is None and NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    fitting = kinds
    if isinstance(state, Mapping):
        fitting = tuple(k for k in kinds if getattr(k, "__name__", "") == state.get(TYPE))
    if len(fitting) == 1:
        return decode(fitting[0], state, path, sizes)
    for kind in fitting:
        with suppress(ValueError):
            return decode(kind, state, path, sizes)
    names = ", ".join(getattr(kind, "__name__", "array") for kind in kinds)
    raise ValueError(f"{path}: must be one of {names}; got {state!r:.40}")


def _decode_annotated(kind: Any, note: Any, state: Any, path: str, sizes: dict[str, int]) -> Any:
    if isinstance(note, SavedAs):
        return decode(note.kinds, state, path, sizes)
    if isinstance(note, np.dtype):
        if not isinstance(state, np.ndarray) or state.dtype != note or state.ndim != 1:
            raise ValueError(f"{path}: must be an array with the columns {note.names}")
        return np.array(state)
    if kind is float:  # which need not be finite
        return state if type(state) is float else _decode_scalar(float, state, path)
    return _decode_array(kind, note, state, path, sizes)


def _decode_array(
    kind: Any, shape: Shape, state: Any, path: str, sizes: dict[str, int]
) -> NDArray[Any]:
    scalar = get_args(get_args(kind)[1])[0]  # of NDArray[scalar]; Any stands for float64
    dtype = np.dtype(np.float64 if scalar is Any else scalar)
    axes = shape.axes.split()
    if not isinstance(state, np.ndarray) or state.dtype != dtype or state.ndim != len(axes):
        raise ValueError(f"{path}: must be an array of {dtype} with axes {shape.axes!r}")
    for axis, size in zip(axes, state.shape, strict=True):
        expected = int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
        if size != expected:
            raise ValueError(f"{path}: {axis} is {size}, expected {expected}")
    if dtype.kind == "f" and shape.finite and not np.isfinite(state).all():
        raise ValueError(f"{path}: must be finite")
    return np.array(state, order="K")


def _decode_scalar(kind: Any, state: Any, path: str) -> Any:
    if kind is int and type(state) is int and 0 <= state <= MAX_COUNT:
        return state
    if kind is float and type(state) in (int, float) and abs(state) <= np.finfo(np.float64).max:
        return float(state)
    if kind in (str, bool) and type(state) is kind:
        return state
    raise ValueError(f"{path}: must be of type {kind.__name__}; got {state!r:.40}")


def _decode_parameter(state: Any, path: str) -> Any:
    """Return a value of a type that the state itself names: a parameter of an estimator."""
    if state is None or isinstance(state, bool | int | float | str):
        return state
    if isinstance(state, np.ndarray):
        return np.array(state, order="K")
    kind = state.get(TYPE) if isinstance(state, Mapping) else "tuple"
    if kind in [builtin.__name__ for builtin in get_args(BuiltinKernel)]:
        return decode(BuiltinKernel, state, path)
    if kind == "dict":
        return _decode_dict(Any, state, path)
    if kind not in ("list", "tuple"):
        raise ValueError(f"{path}: unknown type {kind!r:.40}")
    parts = decode(tuple[Any, ...], state.get(ITEMS) if kind == "list" else state, path)
    return [*parts] if kind == "list" else parts


def _decode_dict(kind: Any, state: Mapping[str, Any], path: str) -> dict[Any, Any]:
    pairs = [_items(pair, path) for pair in _items(state.get(ITEMS), path)]
    if not all(len(pair) == 2 and isinstance(pair[0], str | int | float) for pair in pairs):
        raise ValueError(f"{path}: must be pairs of a string or number and a value")
    return {key: decode(kind, part, f"{path}[{key!r:.40}]") for key, part in pairs}


def _unstacked(state: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the state of a dict; that of a dict of records has the parts of all together."""
    if state[TYPE] == "dict":
        return state
    keys = _items(state.get("keys"), path)
    try:
        parts = unstack(state.get(ITEMS), len(keys))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return {ITEMS: [list(pair) for pair in zip(keys, parts, strict=True)]}


def _items(state: Any, path: str) -> Any:
    if not isinstance(state, list | tuple):
        raise ValueError(f"{path}: must be a list; got {type(state).__name__}")
    return state
