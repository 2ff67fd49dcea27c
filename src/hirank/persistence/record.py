"""Records as nested dicts and lists of arrays, numbers and strings, and back by declared type.

A record declares its fields: arrays by ``Annotated[Array, Shape("n v")]``, other records by their
type, and what must hold between the fields by a method ``check``. A state is decoded top down from
the type of the whole, so that nothing in a file names what is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from hirank._typing import SavedAs, Shape
from hirank.kernels import RBF, Kernel, Poly

MAX_COUNT = 2**53
MAX_DEPTH = 50
TYPE = "type"
"""The key that holds the name of a record where its declared type leaves a choice."""


def encode(value: Any) -> Any:
    """Return a record, or what records consist of, in plain parts. Arrays are copied.

    Examples
    --------
    >>> from hirank.kernels import RBF
    >>> from hirank.persistence.record import decode, encode
    >>> encode(RBF(2.0))
    {'type': 'RBF', 'sigma': 2.0}
    >>> decode(RBF, encode(RBF(2.0)))
    RBF(sigma=2.0)
    """
    if isinstance(value, np.ndarray):
        return np.array(value, order="K")  # products round differently in another layout
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Kernel) and not isinstance(value, RBF | Poly):
        raise TypeError(
            f"The kernel {value!r} cannot be saved, since it is not one of hirank's own. Use "
            "RBF or Poly."
        )
    names = _field_names(type(value))
    if names is not None:
        parts = {name: encode(getattr(value, name)) for name in names}
        return {TYPE: type(value).__name__, **parts}
    if isinstance(value, Mapping):
        return {str(key): encode(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [encode(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} cannot be saved: only numbers, strings, arrays and kernels can.")


def decode(kind: Any, state: Any, path: str = "model", sizes: dict[str, int] | None = None) -> Any:
    """Return a value of the declared type `kind`; raise ValueError if the state is not one.

    `path` names the place in messages; `sizes` are the lengths of axes by name in a record.
    """
    if path.count(".") + path.count("[") > MAX_DEPTH:
        raise ValueError(f"{path}: nested too deeply")
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _decode_annotated(args[0], args[1], state, path, {} if sizes is None else sizes)
    if origin in (Union, UnionType):
        return _decode_union(args, state, path, sizes)
    if origin is tuple:
        if not isinstance(state, list | tuple):
            raise ValueError(f"{path}: must be a list; got {type(state).__name__}")
        return tuple(decode(args[0], part, f"{path}[{i}]") for i, part in enumerate(state))
    if origin is dict:
        if not isinstance(state, Mapping):
            raise ValueError(f"{path}: must be a mapping; got {type(state).__name__}")
        return {str(key): decode(args[1], part, f"{path}.{key}") for key, part in state.items()}
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


def _decode_record(kind: Any, state: Any, path: str) -> Any:
    names = _field_names(kind) or ()
    if (
        not isinstance(state, Mapping)
        or set(state) != {TYPE, *names}
        or state[TYPE] != kind.__name__
    ):
        raise ValueError(f"{path}: must be a {kind.__name__} with the fields {', '.join(names)}")
    sizes: dict[str, int] = {}
    hints = get_type_hints(kind, include_extras=True)
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
    if isinstance(state, Mapping) and TYPE in state:
        kinds = tuple(kind for kind in kinds if getattr(kind, "__name__", "") == state[TYPE])
    errors = []
    for kind in kinds:
        try:
            return decode(kind, state, path, sizes)
        except ValueError as error:
            errors.append(str(error))
    raise ValueError(errors[0] if errors else f"{path}: unknown type")


def _decode_annotated(kind: Any, note: Any, state: Any, path: str, sizes: dict[str, int]) -> Any:
    if isinstance(note, SavedAs):
        return decode(note.kinds, state, path, sizes)
    if isinstance(note, np.dtype):
        if not isinstance(state, np.ndarray) or state.dtype != note or state.ndim != 1:
            raise ValueError(f"{path}: must be an array with the columns {note.names}")
        return np.array(state)
    if kind is float:
        return float(state) if type(state) is float else _decode_scalar(float, state, path)
    return _decode_array(kind, note, state, path, sizes)


def _decode_array(
    kind: Any, shape: Shape, state: Any, path: str, sizes: dict[str, int]
) -> np.ndarray[Any, Any]:
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
    raise ValueError(f"{path}: must be a {kind.__name__}; got {state!r:.40}")


def encode_params(value: Any) -> Any:
    """Return a parameter of an estimator in plain parts that keep lists and tuples apart."""
    if isinstance(value, Kernel):
        return encode(value)
    if isinstance(value, np.ndarray):
        return encode_params(value.tolist())
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {TYPE: kind, "items": [encode_params(part) for part in value]}
    if isinstance(value, Mapping):
        pairs = [[encode(key), encode_params(part)] for key, part in value.items()]
        return {TYPE: "dict", "items": pairs}
    return encode(value)


def decode_params(state: Any, path: str = "params", depth: int = 0) -> Any:
    """Return the parameter that `encode_params` was given."""
    if not isinstance(state, Mapping):
        if state is None or isinstance(state, bool | int | float | str):
            return state
        raise ValueError(f"{path}: must be a number, a string or None; got {type(state).__name__}")
    kind, items = state.get(TYPE), state.get("items")
    if kind in ("RBF", "Poly"):
        return decode(RBF | Poly, state, path)
    if kind not in ("tuple", "list", "dict") or not isinstance(items, list) or depth > MAX_DEPTH:
        raise ValueError(f"{path}: unknown type {kind!r:.40}")
    if kind == "dict":
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in items):
            raise ValueError(f"{path}: must be pairs of keys and values")
        if not all(isinstance(key, str | int | float) for key, _ in items):
            raise ValueError(f"{path}: keys must be strings or numbers")
        return {key: decode_params(part, f"{path}[{key!r:.40}]", depth + 1) for key, part in items}
    values = [decode_params(part, f"{path}[{i}]", depth + 1) for i, part in enumerate(items)]
    return tuple(values) if kind == "tuple" else values
