"""What the parts of a record must be, so that a state from anywhere makes a model that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.core.bounds import Bounds
from hirank.core.scaling import Scaling, TailCompression
from hirank.kernels import RBF, Poly
from hirank.models.calibration import Calibration, Scale
from hirank.models.low_rank import Subspace
from hirank.models.mixture import Mixture
from hirank.models.row_models import Dictionary, Fitted
from hirank.models.stacking import Blend
from hirank.models.temporal_smoother import Drift
from hirank.online.algorithm2 import PaperModel, SampleStream
from hirank.online.buffer import Memory, Model
from hirank.online.prequential import HISTORY, Scores
from hirank.online.window import WindowStream
from hirank.optim.algorithm2 import PaperStream
from hirank.optim.path import Setting, Stage
from hirank.selection.candidates import Tried
from hirank.selection.results import HeldOut

LARGEST_COUNT = 2**53
MOST_STAGES, MOST_ROUNDS = 100, 1000
"""Far more than any fit has: a model must not keep its user waiting for ever."""
FARTHEST, STEEPEST = 1e150, 500.0
"""Of points in scaled units, and of logarithms of scales: beyond, squares and powers overflow."""
TINY = 1e-16
"""Part of its center that the spread of a feature exceeds: else it counts as constant."""

PARTS: dict[type, dict[str, Any]] = {
    TailCompression: {
        "compressed": "bool m",
        "lower": "m",
        "upper": "m",
        "min_inlier": "m?",
        "max_inlier": "m?",
    },
    Blend: {"parts": [Dictionary, Mixture, Subspace], "weights": "p", "kinds": [str]}
    | {"bounds": (Bounds, None)},
    Bounds: {"lower": "v?", "upper": "v?"},
    Calibration: {"scale": Scale, "power": float, "scores": "h"},
    Dictionary: {"D": "r v", "settings": [Setting], "rounds": int, "bounds": (Bounds, None)},
    Drift: {"mean": "v", "spread": "v v", "change": "v v", "unit": float, "doubt": "v?"},
    Fitted: {"nonempty": "bool m", "scaling": Scaling, "D": "r v", "settings": [Setting]}
    | {"rounds": int},
    HeldOut: {"rows": "int h", "columns": "int h", "truth": "h", "fill": "h", "fills": "h c"}
    | {"linear": "h?", "spread": "h"},
    Memory: {"rows": "w m?", "filled": "w m?", "guess": "w m?"},
    Mixture: {"weights": "K", "means": "K v", "covariances": "K v v"},
    Model: {"fitted": Fitted, "stages": [Stage], "end": int, "unit": "m?", "means": "m?"}
    | {"low": "m?", "high": "m?"},
    PaperModel: {"nonempty": "bool m", "scaling": Scaling, "setting": Setting}
    | {"stream": PaperStream, "unit": "v", "max_inner": int, "tol": float},
    PaperStream: {"D": "r v", "last_D": "r v", "rejected": int},
    Poly: {"degree": int, "offset": float},
    RBF: {"sigma": (float, None)},
    SampleStream: {"width": int, "seed": int, "pending": "p m?", "model": (PaperModel, None)}
    | {"scores": Scores, "samples": int, "batches": int, "action": str},
    Scale: {"level": float, "effects": "v", "slopes": "2", "floors": "2", "centers": "2"}
    | {"limits": "2 2"},
    Scaling: {"center": "m", "spread": "m", "mean": "m", "tails": (TailCompression, None)},
    Scores: {"errors": "e", "history": HISTORY},
    Setting: {"kernel": (RBF, Poly), "beta": float, "alpha": float},
    Stage: {"bandwidth": float, "beta": float, "balance": float},
    Subspace: {"basis": "r m", "ridge": float, "constant": (float, None)},
    Tried: {"name": str, "settings": dict, "fills": list, "error": "any", "seconds": float}
    | {"state": None, "failure": str},
    WindowStream: {"width": int, "seed": int, "pending": "p m?", "memory": Memory}
    | {"model": (Model, None), "scores": Scores, "samples": int, "batches": int}
    | {"walked": int, "rested": int, "rest": int, "suspect": int, "walks": int, "action": str},
}
"""What each field holds: a type, several to choose from, a list of such, or an array.

Of an array, sizes are named (a number is itself), and a name has one value in a record. Entries are
float64 unless said otherwise, and finite unless there is a question mark.
"""


def check_record(record: Any, parts: dict[str, Any]) -> Any:
    """The record made of parts; raises ValueError if they are not what it needs."""
    sizes: dict[str, int] = {}
    for name, wanted in PARTS[record].items():
        try:
            _check(parts[name], wanted, sizes)
        except ValueError as error:
            raise ValueError(
                f"The state is damaged: {name} of {record.__name__} {error}."
            ) from None
    made = record(**parts)
    wrong = _RULES.get(record, lambda _: "")(made)
    if wrong:
        raise ValueError(f"The state is damaged: {record.__name__}: {wrong}.")
    return made


def _check(value: Any, wanted: Any, sizes: dict[str, int]) -> None:
    if isinstance(wanted, np.dtype):
        if not isinstance(value, np.ndarray) or value.dtype != wanted or value.ndim != 1:
            raise ValueError(f"should be a column of {wanted.names}")
    elif isinstance(wanted, str):
        if wanted == "any":
            _check(0.0 if type(value) is float else value, float, sizes)
        else:
            _check_array(value, wanted, sizes)
    elif isinstance(wanted, list):
        if not isinstance(value, tuple):
            raise ValueError("should be a list")
        for part in value:
            _check(part, tuple(wanted), sizes)
    elif isinstance(wanted, tuple):
        if not any(_is(value, one) for one in wanted):
            raise ValueError("should be something else")
    elif not _is(value, wanted):
        raise ValueError("should be something else")


def _is(value: Any, wanted: Any) -> bool:
    """Whether a value is just of a type; floats are finite, and whole numbers counts."""
    if wanted is None:
        return value is None
    if wanted is int:
        return type(value) is int and 0 <= value <= LARGEST_COUNT
    if wanted is float:
        return type(value) in (int, float) and abs(value) <= np.finfo(np.float64).max
    return type(value) is wanted


def _check_array(value: Any, wanted: str, sizes: dict[str, int]) -> None:
    *names, last = wanted.split()
    kind = names.pop(0) if names and names[0] in ("bool", "int") else "float"
    names.append(last.removesuffix("?"))
    dtype = {"bool": np.bool_, "int": np.intp, "float": np.float64}[kind]
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(names):
        raise ValueError(f"should be an array of {np.dtype(dtype)} with {len(names)} axes")
    for name, size in zip(names, value.shape, strict=True):
        expected = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if size != expected:
            raise ValueError(f"should have {expected} where it has {size} entries")
    if kind == "float" and not last.endswith("?") and not np.isfinite(value).all():
        raise ValueError("should be finite")


def width(part: Dictionary | Mixture | Subspace | Blend) -> int:
    """Features that a model of rows is about."""
    if isinstance(part, Blend):
        return width(part.parts[0])  # type: ignore[arg-type]
    if isinstance(part, Dictionary):
        return part.D.shape[1]
    if isinstance(part, Mixture):
        return part.means.shape[1]
    return part.basis.shape[1] - (part.constant is not None)


def _tails(tails: TailCompression) -> str:
    if not ((tails.lower <= tails.upper).all() and (tails.min_inlier <= tails.max_inlier).all()):
        return "its ends are in the wrong order"
    return ""


def _scaling(scaling: Scaling) -> str:
    if (scaling.spread < 0).any():
        return "a spread is negative"
    v = scaling.varying
    if (scaling.spread[v] < TINY * np.abs(scaling.center[v])).any():
        return "a feature is said to vary, but hardly does"
    if scaling.tails is not None and len(scaling.tails.compressed) != len(scaling.center):
        return "its tails are of other features"
    return ""


def _setting(setting: Setting) -> str:
    if isinstance(setting.kernel, RBF) and setting.kernel.sigma is None:
        return "its kernel has no length scale"
    return "" if setting.beta > 0 and setting.alpha >= 0 else "beta or alpha is not positive"


def _dictionary(rows: Dictionary | Fitted) -> str:
    r, v = rows.D.shape
    if not 0 < rows.rounds <= MOST_ROUNDS or len(rows.settings) > MOST_STAGES:
        return "it would take too many steps, or none"
    if v and not (r and rows.settings):
        return "it has no points or no stages"
    if np.abs(rows.D).max(initial=0.0) > FARTHEST:
        return "its points are too far off"
    if isinstance(rows, Fitted):
        return _about(rows.nonempty, rows.scaling, v)
    return _limits(rows.bounds, v)


def _about(nonempty: Array, scaling: Scaling, v: int) -> str:
    if int(nonempty.sum()) != len(scaling.center):
        return "features that had values are other ones than those that are scaled"
    return "" if int(scaling.varying.sum()) == v else "it is about other features than those scaled"


def _limits(bounds: Bounds | None, v: int) -> str:
    return "its limits are of other features" if bounds and len(bounds.lower) != v else ""


def _mixture(mixture: Mixture) -> str:
    if not len(mixture.weights) or (wrong := _shares(mixture.weights)):
        return wrong if len(mixture.weights) else "it is empty"
    return next(filter(None, map(_covariance, mixture.covariances)), "")


def _shares(weights: Array) -> str:
    if (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
        return "its weights are no shares"
    return ""


def _covariance(S: Array) -> str:
    """Rounding may have made it a little less than positive definite."""
    if not len(S):
        return ""
    size = np.abs(S).max()
    if not size < 1e200 or not np.allclose(S, S.T, rtol=1e-6, atol=1e-6 * size):
        return "a covariance is not symmetric, or too large"
    try:
        np.linalg.cholesky(S + 1e-9 * size * np.eye(len(S)))
    except np.linalg.LinAlgError:
        return "a covariance is not positive definite"
    return ""


def _subspace(rows: Subspace) -> str:
    if width(rows) < 0 or not len(rows.basis):
        return "it has no basis"
    return "" if rows.ridge >= 0 else "its ridge is negative"


def _blend(blend: Blend) -> str:
    p = len(blend.parts)
    if not p or p != len(blend.weights) or p != len(blend.kinds):
        return "it has not a weight and a name for each part"
    if len({width(part) for part in blend.parts}) > 1:  # type: ignore[arg-type]
        return "its parts are about different features"
    return _shares(blend.weights) or _limits(blend.bounds, width(blend))


def _drift(drift: Drift) -> str:
    if not drift.unit > 0 or not (drift.doubt > 0).all():
        return "times or doubts are not positive"
    return _covariance(drift.spread) or _covariance(drift.change)


def _scale(scale: Scale) -> str:
    if not (scale.floors > 0).all() or not (scale.limits[0] <= scale.limits[1]).all():
        return "its floors are not positive, or its limits in the wrong order"
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.abs(scale.slopes) @ np.abs(scale.limits - scale.centers).max(axis=0)
        largest = scale.level + np.abs(scale.effects).max(initial=0.0) + reach
    return "" if largest < STEEPEST else "it is too steep"


def _calibration(calibration: Calibration) -> str:
    scores = calibration.scores
    if not len(scores) or scores[0] < 0 or (np.diff(scores) < 0).any():
        return "its scores are not sorted"
    if scores[-1] > FARTHEST:
        return "its scores are too large"
    return "" if 0 <= calibration.power <= 1 else "its power is not between 0 and 1"


def _held_out(held_out: HeldOut) -> str:
    if not len(held_out.truth) or not held_out.fills.shape[1]:
        return "it is empty"
    fine = held_out.rows.min() >= 0 and held_out.columns.min() >= 0 and held_out.spread.min() >= 0
    return "" if fine and not np.isinf(held_out.linear).any() else "a number is impossible"


def _tried(tried: Tried) -> str:
    if tried.fills or type(tried.settings.get("n_components")) is not int:
        return "it has tables, or no size"
    known = {"n_components", "kernel", "bandwidth", "beta", "noise", "ridge"}
    for name, value in tried.settings.items():
        if name not in known or not (_is(value, str) if name == "kernel" else _is(value, float)):
            return f"its settings are none: {name!r:.40}"
    if tried.name == "kernelized" and "kernel" not in tried.settings:
        return "it has no kernel"
    return ""


def _scores(scores: Scores) -> str:
    lines = scores.history
    fine = (scores.errors >= 0).all() and (lines["error"] >= 0).all()
    if not fine or np.isinf(lines["error"]).any() or (lines["entries"] <= 0).any():
        return "errors are negative, or of nothing"
    return ""


def _memory(memory: Memory) -> str:
    known = ~np.isnan(memory.rows)
    if any(np.isinf(part).any() for part in (memory.rows, memory.filled, memory.guess)):
        return "a value is infinite"
    same = memory.rows[known] == memory.filled[known]
    return "" if same.all() and not np.isnan(memory.filled).any() else "its fills are none"


def _model(model: Model) -> str:
    m = len(model.unit)
    fitted = model.fitted
    if len(fitted.nonempty) != m:
        return "it has other features than its dictionary"
    if len(model.stages) != len(fitted.settings) or not len(model.stages) <= model.end:
        return "it has other stages than its dictionary"
    if (model.unit < 0).any() or np.isinf(model.unit).any():
        return "a standard deviation is negative"
    if np.isinf(model.means).any() or np.isnan(model.means[fitted.nonempty]).any():
        return "a mean is missing"
    return "" if (model.low <= model.high).all() else "its limits are in the wrong order"


def _paper_model(model: PaperModel) -> str:
    wrong = _about(model.nonempty, model.scaling, model.D.shape[1])
    if wrong or len(model.unit) != model.D.shape[1]:
        return wrong or "it has other features than its dictionary"
    fine = 0 < model.max_inner <= 10**6 and model.tol >= 0 and (model.unit > 0).all()
    return "" if fine and len(model.D) else "a number is impossible"


def _stream(stream: WindowStream | SampleStream) -> str:
    m = stream.width
    if m < 1 or stream.pending.shape[1] != m or np.isinf(stream.pending).any():
        return "pending rows are of other features, or infinite"
    if stream.seed >= 2**32 or stream.samples < len(stream.pending):
        return "a number is impossible"
    if isinstance(stream, SampleStream):
        fine = stream.model is None or len(stream.model.nonempty) == m
    else:
        fine = stream.memory.rows.shape[1] == m and stream.rest > 0
        fine &= stream.model is None or (len(stream.model.unit) == m and len(stream.memory) > 0)
        fine &= stream.walked <= stream.samples
    return "" if fine else "its parts are of different features"


_RULES: dict[type, Callable[[Any], str]] = {
    TailCompression: _tails,
    Blend: _blend,
    Calibration: _calibration,
    Dictionary: _dictionary,
    Drift: _drift,
    Fitted: _dictionary,
    HeldOut: _held_out,
    Memory: _memory,
    Mixture: _mixture,
    Model: _model,
    PaperModel: _paper_model,
    SampleStream: _stream,
    Scale: _scale,
    Scaling: _scaling,
    Scores: _scores,
    Setting: _setting,
    Subspace: _subspace,
    Tried: _tried,
    WindowStream: _stream,
}
"""What must hold between the parts: a function that says what is wrong, if anything."""
