"""A fitted KFMC in plain parts, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.impute import MissingIndicator

from hirank.core.bounds import Bounds
from hirank.core.scaling import Scaling
from hirank.estimators.column_constraints import position
from hirank.estimators.search_plan import table_of
from hirank.estimators.uncertainty import held_out_of
from hirank.estimators.validation import kernel_of
from hirank.models.calibration import Calibration
from hirank.models.mixture import Mixture
from hirank.models.row_models import Dictionary
from hirank.models.stacking import Blend
from hirank.models.temporal_smoother import Drift
from hirank.optim.trace import TRACE
from hirank.persistence.checks import width
from hirank.persistence.records import from_state, to_state
from hirank.selection.candidates import Tried
from hirank.selection.results import Chosen, HeldOut
from hirank.selection.uncertainty import Confidence

NUMBERS: dict[str, type[Any]] = {"objective": float, "n_iter": int, "seconds": float, "thin": int}
"""Single numbers of a fit."""
PARTS = {
    *("params", "feature_names", "has_values", "scaling", "limits", "whole", "drift", "rows"),
    *("dictionary", "calibration", "chosen", "indicator", "stop_reason", "trace", *NUMBERS),
}


def state_of(model: Any) -> dict[str, Any]:
    """All that a fitted KFMC is, as nested dicts and lists of arrays, numbers and words.

    What follows from other parts is left out, and what is there twice is told by its number.
    """
    params = model.get_params(deep=False)
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = None
    names = getattr(model, "feature_names_in_", None)
    indicator, chosen, confidence = model._indicator, model._chosen, model._confidence
    missing = None
    if indicator is not None:
        missing = np.isin(np.arange(model.n_features_in_), indicator.features_)
    parts = model._rows.parts if isinstance(model._rows, Blend) else (model._rows,)
    return {
        "params": {name: to_state(value) for name, value in params.items()},
        "feature_names": None if names is None else [str(name) for name in names],
        "has_values": to_state(model.has_values_),
        "scaling": to_state(model._scaling),
        "limits": to_state(model._limits),
        "whole": to_state(model._whole),
        "drift": to_state(model._drift),
        "rows": to_state(model._rows),
        "dictionary": _number_or_state(model._dictionary, parts),
        "calibration": None if confidence is None else to_state(confidence.calibration),
        "chosen": None if chosen is None else _chosen_state(chosen, parts),
        "indicator": missing,
        "stop_reason": str(model.stop_reason_),
        "trace": to_state(model.trace_),
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "seconds": float(model._seconds),
        "thin": int(model._thin),
    }


def kfmc_of(kind: Any, state: Any) -> Any:
    """The fitted model, of class `kind`; raises ValueError if its parts do not fit together."""
    if not isinstance(state, Mapping) or set(state) != PARTS:
        raise ValueError("it has not the parts of a fitted KFMC")
    given = _expect(state["params"], Mapping, "parameters")
    if set(given) != set(kind._get_param_names()):
        raise ValueError("it has other parameters than this version of hirank")
    model = kind(**{name: from_state(value) for name, value in given.items()})
    _take_features(model, state)
    v = int(model._scaling.varying.sum())
    model._rows = _expect(from_state(state["rows"]), Blend | Dictionary, "models")
    _same(width(model._rows), v, "the models are about other features")
    _take_fit(model, state, v)
    _take_numbers(model, state)
    return model


def _take_features(model: Any, state: Mapping[str, Any]) -> None:
    """What the model knows of its columns."""
    has_values = _bools(state["has_values"], "features")
    m = model.n_features_in_ = len(has_values)
    _same(bool(has_values.any()), True, "no feature has values")
    names = state["feature_names"]
    if names is not None:
        fine = isinstance(names, list) and all(isinstance(name, str) for name in names)
        _same(fine and len(names), m, "it has not a name for each feature")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.has_values_ = has_values
    model._scaling = scaling = _expect(from_state(state["scaling"]), Scaling, "scaling")
    _same(len(scaling.center), int(has_values.sum()), "other features are scaled")
    if scaling.tails is None:
        fine = (scaling.center == scaling.mean) | (scaling.center == 0)
        _same(bool(fine.all()), True, "features are scaled around something else than their means")
    model._limits = _expect(from_state(state["limits"]), Bounds | None, "limits")
    model._scaled_limits = None
    if model._limits is not None:
        _same(len(model._limits.lower), len(scaling.center), "other features are limited")
        model._scaled_limits = model._limits.scale(scaling)
    model._whole = _bools(state["whole"], "whole numbers")
    _same(len(model._whole), m, "whole numbers are those of other features")
    if model.order not in (None, "time"):
        position(model.order, getattr(model, "feature_names_in_", None), m, "order")
    model._indicator = None
    if state["indicator"] is not None:
        missing = _bools(state["indicator"], "indicator")
        _same(len(missing), m, "the indicator is of other features")
        one = np.where(missing, np.nan, 0.0)[None]
        model._indicator = MissingIndicator(error_on_new=False).fit(one)


def _take_fit(model: Any, state: Mapping[str, Any], v: int) -> None:
    """What was chosen, and what is known of how good it is."""
    parts = model._rows.parts if isinstance(model._rows, Blend) else (model._rows,)
    rows = _from_number_or_state(state["dictionary"], parts)
    model._dictionary = _expect(rows, Dictionary, "dictionary")
    _same(model._dictionary.D.shape[1], v, "the dictionary is about other features")
    model._drift = _expect(from_state(state["drift"]), Drift | None, "drift")
    if model._drift is not None:
        _same(len(model._drift.mean), v, "other features drift")
        _same(model.order is not None, True, "rows drift without an order")
    chosen = state["chosen"]
    _same(chosen is None, not isinstance(model._rows, Blend), "nobody chose its models")
    model._chosen = None if chosen is None else _chosen_of(model, chosen, parts, v)
    calibration = _expect(from_state(state["calibration"]), Calibration | None, "calibration")
    model._confidence = None
    if calibration is not None:
        _same(len(calibration.scale.effects), v, "widths are those of other features")
        _same(model._chosen is not None, True, "there are widths, but no models")
        model._confidence = Confidence(calibration, model._rows, model._chosen.mixture)
    model.dictionary_ = model._scaling.backward(model._dictionary.D)
    model.n_components_ = len(model._dictionary.D)
    settings = model._dictionary.settings
    model.kernel_ = settings[-1].kernel if settings else kernel_of(model)
    model.search_results_ = table_of([] if model._chosen is None else model._chosen.results)
    model.held_out_ = held_out_of(model, model._chosen)


def _take_numbers(model: Any, state: Mapping[str, Any]) -> None:
    for name, kind in NUMBERS.items():
        value: Any = state[name]
        fine = type(value) is kind and (kind is float or bool(value >= 0))
        _same(fine, True, f"{name} is no number")
    model.objective_, model.n_iter_ = state["objective"], state["n_iter"]
    model._seconds, model._thin = state["seconds"], state["thin"]
    model.stop_reason_ = _expect(state["stop_reason"], str, "reason to stop")
    trace = _expect(from_state(state["trace"]), np.ndarray, "trace")
    _same((trace.dtype, trace.ndim), (TRACE, 1), "its trace is none")
    model.trace_ = trace


def _chosen_state(chosen: Chosen, parts: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "mixture": _number_or_state(chosen.mixture, parts),
        "objective": float(chosen.objective),
        "results": [[to_state(tried), float(weight)] for tried, weight in chosen.results],
        "held_out": to_state(chosen.held_out),
        "gain": float(chosen.gain),
    }


def _chosen_of(model: Any, state: Any, parts: tuple[Any, ...], v: int) -> Chosen:
    wanted = {"mixture", "objective", "results", "held_out", "gain"}
    if not isinstance(state, Mapping) or set(state) != wanted:
        raise ValueError("it does not say what was chosen")
    mixture = _expect(_from_number_or_state(state["mixture"], parts), Mixture | None, "mixture")
    if mixture is not None:
        _same(width(mixture), v, "the mixture is about other features")
    held_out = _expect(from_state(state["held_out"]), HeldOut | None, "hidden entries")
    if held_out is not None:
        _same(held_out.columns.max() < v, True, "hidden entries are those of other features")
    results = []
    for pair in _expect(from_state(state["results"]), tuple, "results"):
        tried, weight = pair
        fine = isinstance(tried, Tried) and type(weight) is float and 0 <= weight <= 1
        _same(fine, True, "its results are none")
        results.append((tried, weight))
    _same(any(weight for _, weight in results), True, "nothing was chosen")
    for name in ("objective", "gain"):
        _expect(state[name], float, name)
    return Chosen(
        X=np.zeros((0, v)),
        blend=model._rows,
        dictionary=model._dictionary,
        mixture=mixture,
        objective=state["objective"],
        results=results,
        held_out=held_out,
        first_fold=(np.zeros((0, v), bool), np.zeros((0, v))),
        gain=state["gain"],
    )


def _number_or_state(value: Any, parts: tuple[Any, ...]) -> Any:
    """A record; only its number if it is one of the parts."""
    for number, part in enumerate(parts):
        if part is value:
            return number
    return to_state(value)


def _from_number_or_state(state: Any, parts: tuple[Any, ...]) -> Any:
    if type(state) is not int:
        return from_state(state)
    _same(0 <= state < len(parts), True, "it refers to a model that is not there")
    return parts[state]


def _bools(value: Any, what: str) -> Any:
    array = _expect(from_state(value), np.ndarray, what)
    _same((array.dtype, array.ndim), (np.dtype(bool), 1), f"its {what} are none")
    return array


def _expect(value: Any, kind: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"its {what} should be something else")
    return value


def _same(one: Any, two: Any, what: str) -> None:
    if one != two:
        raise ValueError(what)
