"""Records as nested dicts and lists of arrays, numbers and words, and back: no pickle, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from hirank.kernels import RBF, Kernel, Poly
from hirank.model.scaling import Bend, Scaling
from hirank.solvers.fitted import Fitted
from hirank.solvers.paper_stream import PaperStream
from hirank.solvers.path import Setting, Stage
from hirank.streams.memory import Memory, Model
from hirank.streams.paper import PaperModel, SampleStream
from hirank.streams.scores import Scores
from hirank.streams.window import WindowStream

_RECORDS: dict[str, Any] = {
    record.__name__: record
    for record in (
        Bend,
        Fitted,
        Memory,
        Model,
        PaperModel,
        PaperStream,
        Poly,
        RBF,
        SampleStream,
        Scaling,
        Scores,
        Setting,
        Stage,
        WindowStream,
    )
}


def to_state(value: Any) -> Any:
    """A record, or what records are made of, in plain parts. Arrays are copied."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) is _RECORDS.get(type(value).__name__):
        return {
            "record": type(value).__name__,
            **{name: to_state(getattr(value, name)) for name in _names(type(value))},
        }
    if isinstance(value, Kernel):
        raise TypeError(
            f"The kernel {value!r} is not one of hirank's own, so it can't be saved: arrays and "
            "numbers are not all there is to it."
        )
    if isinstance(value, tuple | list):
        return [to_state(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} can't be saved: only numbers, words, arrays and kernels can.")


def from_state(state: Any) -> Any:
    """What :func:`to_state` was given; raises ValueError for anything else."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, list | tuple):
        return tuple(from_state(part) for part in state)
    if not isinstance(state, Mapping):
        return state
    name = state.get("record")
    if name not in _RECORDS:
        raise ValueError(f"The state holds a record {name!r} that this version does not know.")
    record = _RECORDS[name]
    wanted, given = set(_names(record)), set(state) - {"record"}
    if wanted != given:
        raise ValueError(
            f"The state of {name} should have {sorted(wanted)} but has {sorted(given)}: it is "
            "damaged, or from another version of hirank."
        )
    return record(**{key: from_state(state[key]) for key in given})


def _names(record: Any) -> tuple[str, ...]:
    if is_dataclass(record):
        return tuple(f.name for f in fields(record))
    return tuple(record._fields)  # a named tuple
