"""Fitted estimators as files, and back."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from hirank._atomic import replace_file
from hirank._text import abbreviated
from hirank._typing import PathLike
from hirank.exceptions import ModelFileError
from hirank.persistence.container import (
    FORMAT,
    model_file_errors,
    pack,
    printable,
    read,
    unpack,
)
from hirank.persistence.encoding import to_json
from hirank.persistence.record import decode, encode

if TYPE_CHECKING:
    from hirank.estimators import KFMC, Imputer, OnlineImputer, OnlineKFMC

    Model: TypeAlias = Imputer | KFMC | OnlineImputer | OnlineKFMC
    M = TypeVar("M", Imputer, KFMC, OnlineImputer, OnlineKFMC)

OUTPUTS = (None, "default", "pandas", "polars")
"""Containers that ``set_output`` accepts."""
LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""Results may be rounded differently with other versions of these."""
MAX_TRIAL_WORK, MAX_TRIAL_WIDTH = 1e9, 100_000
"""Multiplications and features up to which a model is tried out when it is loaded."""
IN_MEMORY = "model in memory"
"""What errors name in place of a path."""
STATE_PARTS = {"format", "params", "feature_names", "output", "record"}


def save(model: Model, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file: what its method ``save`` does.

    `notes` are strings and numbers for programs that use the model, stored in the header.
    """
    data = to_bytes(model, notes)
    with replace_file(path) as file:
        file.write(data)


_reading = RLock()
"""Held while a model is read: it is tried out without warnings, whose filters are those of all
threads, and the reader of arrays is not safe in several threads of Python 3.11 either."""
NOT_CHECKED = ("summary", "stream")
"""Facts in the header that are not compared with the model when it is read."""


def to_bytes(model: Model, notes: Mapping[str, Any] | None = None) -> bytes:
    """Return the content of the file that `save` writes."""
    kind = type(model)
    if _estimators().get(kind.__name__) is not kind:
        raise TypeError(
            f"{kind.__module__}.{kind.__name__} cannot be saved: only hirank's own estimators can, "
            "not classes derived from them."
        )
    if "_record" not in vars(model):
        raise NotFittedError(
            f"This {kind.__name__} is not fitted yet, so there is nothing to save. Call fit or "
            "partial_fit first."
        )
    state = get_state(model)
    facts = _describe(from_state(kind, state))  # raises if the file could not be loaded
    if hasattr(model, "summary"):
        facts["summary"] = _plain(model.summary())
    if hasattr(model, "_stream_facts"):
        facts["stream"] = _plain(model._stream_facts())
    header = {
        "hirank": version("hirank"),
        "kind": kind.__name__,
        "made_with": {"python": platform.python_version()} | {n: version(n) for n in LIBRARIES},
        "model": facts,
        "notes": dict(notes or {}),
    }
    return pack(header, state)


def load(path: PathLike) -> Model:
    """Restore the model that ``save`` wrote to a file.

    It gives the same results to the bit as the one that was saved, on the same machine and with
    the same versions of NumPy, SciPy and scikit-learn and the same compiled core (see
    :func:`hirank.show_versions`); with others, up to rounding. No code from the file is run.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : Imputer, KFMC, OnlineImputer or OnlineKFMC

    Raises
    ------
    hirank.exceptions.ModelFileError
        If the file is not a model, is damaged or was cut off, or is from a later version. It is a
        ValueError.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import hirank
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3])
    >>> X[::3, 1] = np.nan
    >>> model = hirank.Imputer(max_iter=20, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "model.hirank"))
    ...     restored = hirank.load(Path(folder, "model.hirank"))
    >>> restored.stop_reason_ == model.stop_reason_
    True
    """
    with _reading:
        return _restore(*read(path), path)


def from_bytes(data: bytes) -> Model:
    """Restore a model from the bytes that `to_bytes` returned."""
    with _reading:
        return _restore(*unpack(data, IN_MEMORY), IN_MEMORY)


def _restore(header: Mapping[str, Any], state: Any, path: PathLike) -> Model:
    """Return the model of a file with this header and state; errors name the path."""
    kind = _estimators().get(str(header.get("kind")))
    if kind is None:
        raise ModelFileError(
            path,
            f"contains a {printable(repr(header.get('kind')), 60)}, which this version of hirank "
            "does not know. Update hirank: pip install -U hirank.",
        )
    with model_file_errors(path):
        model: Model = from_state(kind, state)
        if "_record" not in vars(model):
            raise ValueError("the model is not fitted")
        facts = {
            name: part for name, part in dict(header["model"]).items() if name not in NOT_CHECKED
        }
        if to_json(facts) != to_json(_describe(model)):
            raise ValueError("the header describes another model")
    return model


def get_state(model: Model) -> dict[str, Any]:
    """Return everything that a model consists of as nested dicts and lists of arrays and numbers.

    A RandomState object given as `random_state` becomes the seed that a stream has drawn from it;
    None for a table, since only ``fit`` draws from it.
    """
    params, record = _parameters(model), vars(model).get("_record")
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = getattr(record, "seed", None)
    names = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "params": encode(params),
        "feature_names": None if names is None else [str(name) for name in names],
        "output": getattr(model, "_sklearn_output_config", {}).get("transform"),
        "record": encode(record),
    }


def from_state(kind: type[M], state: Mapping[str, Any]) -> M:
    """Return the model of class `kind` whose state this is; raise ValueError if it is not one."""
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, Mapping) else None
        raise ValueError(
            f"The state has format {found!r:.40}; this version of hirank reads format {FORMAT}."
        )
    params = decode(dict[str, Any], state.get("params"), "params")
    known = set(kind._get_param_names()) - {"n_jobs"}
    wrong = sorted(map(str, set(params) ^ known | set(state) ^ STATE_PARTS))
    if wrong:
        raise ValueError(
            "The state is damaged, or from another version of hirank: unexpected or missing "
            f"{abbreviated(wrong)}."
        )
    model = kind(**params)
    model._check_params()
    check_random_state(model.random_state)
    names = decode(tuple[str, ...] | None, state["feature_names"], "feature_names")
    record = decode(kind._record_type | None, state["record"])
    if record is not None:
        width = record.width + getattr(model, "_n_side_columns", 0)
        if _has_groups(record) != (getattr(model, "groups", None) is not None):
            raise ValueError("groups: must be those of the parameter groups")
        if names is not None and len(names) != width:
            raise ValueError(f"feature_names: must be {width} names; got {len(names)}")
        model.n_features_in_, model.__dict__["_record"] = width, record
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        _try_out(model)  # before set_output, which may require a library that is not there
    if state["output"] not in OUTPUTS:
        raise ValueError(f"output: must be one of {OUTPUTS}; got {state['output']!r:.40}")
    if state["output"] is not None:
        model.set_output(transform=state["output"])
    return model


def _parameters(model: Model) -> dict[str, Any]:
    """Return the parameters of a model but for the number of threads, which is the machine's."""
    params: dict[str, Any] = model.get_params(deep=False)
    params.pop("n_jobs", None)
    return params


def _estimators() -> dict[str, Any]:
    # Not at the top: the estimators import this module.
    from hirank.estimators import KFMC, Imputer, OnlineImputer, OnlineKFMC

    return {kind.__name__: kind for kind in (Imputer, KFMC, OnlineImputer, OnlineKFMC)}


def _has_groups(record: Any) -> bool:
    """Return whether a stream, or a model of a table, knows groups of rows."""
    axis = getattr(record, "time", None)
    return hasattr(record, "groups") or (axis is not None and axis.group is not None)


def _try_out(model: Model) -> None:
    """Raise if the model cannot impute the simplest rows: parts of the column means.

    A large model is not tried out, so that loading it does not take long: its ``transform`` raises
    if imputed values are not finite.
    """
    if not model.__sklearn_is_fitted__():
        return
    record = vars(model)["_record"]
    work = 0 if record.model is None else record.model.work
    if record.width > MAX_TRIAL_WIDTH or work > MAX_TRIAL_WORK:
        return
    every_second, means = np.arange(record.width) % 2 == 0, record.means()
    rows = np.where([every_second, ~every_second], means, np.nan)
    if getattr(model, "_n_side_columns", 0):
        rows, means = model._widen(rows, 0.0, 0.0), model._widen(means, 0.0, 0.0)
    elif _has_groups(record):
        rows[:, record.time.group] = 0.0
    with _reading, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        filled = np.asarray(model.transform(rows))
        if getattr(record, "calibration", None) is not None:
            filled = np.hstack([filled, *model.interval(rows)])
    gaps = getattr(model, "max_gap", None) is not None  # then NaN may be right
    empty = np.isnan(means) if hasattr(model, "partial_fit") else False  # nor had values
    if not (np.isfinite(filled) | ((gaps | empty) & np.isnan(filled))).all():
        raise ValueError("imputed values are not finite")


def _describe(model: Model) -> dict[str, Any]:
    """Return what the header states about a model."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "class": type(model).__name__,
        "params": _plain(_parameters(model)),
        "feature_names": None if names is None else [*names],
        "n_features_in": int(model.n_features_in_),
    }


def _plain(value: Any) -> Any:
    """Return a value such as a parameter in plain strings and numbers, for people to read."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    return repr(value)
