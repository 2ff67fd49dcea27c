"""Records as nested dicts and lists of arrays, numbers and words, and back: no pickle, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from hirank.core.bounds import Bounds
from hirank.core.scaling import Scaling, TailCompression
from hirank.kernels import RBF, Kernel, Poly
from hirank.models.calibration import Calibration, Scale
from hirank.models.low_rank import Subspace
from hirank.models.mixture import Mixture
from hirank.models.row_models import Dictionary, Fitted
from hirank.models.stacking import Blend
from hirank.models.temporal_smoother import Drift
from hirank.online.algorithm2 import PaperModel, SampleStream
from hirank.online.buffer import Memory, Model
from hirank.online.prequential import Scores
from hirank.online.window import WindowStream
from hirank.optim.algorithm2 import PaperStream
from hirank.optim.path import Setting, Stage
from hirank.persistence.checks import check_record
from hirank.selection.candidates import Tried
from hirank.selection.results import HeldOut

_RECORDS: dict[str, Any] = {
    record.__name__: record
    for record in (
        TailCompression,
        Blend,
        Bounds,
        Calibration,
        Dictionary,
        Drift,
        Fitted,
        HeldOut,
        Memory,
        Mixture,
        Model,
        PaperModel,
        PaperStream,
        Poly,
        RBF,
        SampleStream,
        Scale,
        Scaling,
        Scores,
        Setting,
        Stage,
        Subspace,
        Tried,
        WindowStream,
    )
}
LIST, DICT = "list", "dict"
"""Stand for what a user may give as a parameter. (A plain list stands for a tuple.)"""
MOST_DEPTH = 50


def to_state(value: Any) -> Any:
    """A record, or what records are made of, in plain parts. Arrays are copied."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OSU":  # words
            return to_state(value.tolist())
        return np.array(value, order="K")  # products round differently if they lie differently
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
    if isinstance(value, tuple):
        return [to_state(part) for part in value]
    if isinstance(value, list):
        return {"record": LIST, "items": [to_state(part) for part in value]}
    if isinstance(value, Mapping):
        keys, values = [*value], [*value.values()]
        return {"record": DICT, "keys": to_state(tuple(keys)), "items": to_state(tuple(values))}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} can't be saved: only numbers, words, arrays and kernels can.")


def from_state(state: Any, depth: int = 0) -> Any:
    """What :func:`to_state` was given; raises ValueError for anything else.

    Arrays must have the types and shapes that their records need, and numbers be possible.
    """
    if depth > MOST_DEPTH:
        raise ValueError("The state is damaged: it is nested too deeply.")
    if isinstance(state, np.ndarray):
        return np.array(state, order="K")
    if isinstance(state, list | tuple):
        return tuple(from_state(part, depth + 1) for part in state)
    if not isinstance(state, Mapping):
        return state
    name = state.get("record")
    if name in (LIST, DICT):
        return _container(name, state, depth)
    if not isinstance(name, str) or name not in _RECORDS:
        raise ValueError(f"The state holds a record {name!r} that this version does not know.")
    record = _RECORDS[name]
    wanted, given = set(_names(record)), set(state) - {"record"}
    if wanted != given:
        raise ValueError(
            f"The state of {name} should have {sorted(wanted)} but has {sorted(given)}: it is "
            "damaged, or from another version of hirank."
        )
    parts = {key: from_state(state[key], depth + 1) for key in _names(record)}
    return check_record(record, parts)


def _container(name: str, state: Mapping[str, Any], depth: int) -> list[Any] | dict[Any, Any]:
    items = from_state(state.get("items"), depth + 1)
    if not isinstance(items, tuple):
        raise ValueError(f"The state is damaged: a {name} has no items.")
    if name == LIST:
        return [*items]
    keys = from_state(state.get("keys"), depth + 1)
    if not isinstance(keys, tuple) or not all(isinstance(k, str | int | float) for k in keys):
        raise ValueError("The state is damaged: a dict has no keys.")
    if len({*keys}) != len(items):
        raise ValueError("The state is damaged: a dict has other keys than items.")
    return dict(zip(keys, items, strict=True))


def _names(record: Any) -> tuple[str, ...]:
    if is_dataclass(record):
        return tuple(f.name for f in fields(record))
    return tuple(record._fields)  # a named tuple
