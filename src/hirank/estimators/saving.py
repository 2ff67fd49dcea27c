"""Fitted estimators as files, and back."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hirank._typing import PathLike
from hirank.estimators.fitted import FittedImputer, FittedKFMC
from hirank.exceptions import ModelFileError
from hirank.persistence.container import SAVE_AGAIN, read, write
from hirank.persistence.encoding import printable, to_json
from hirank.persistence.record import decode, decode_params, encode, encode_params

if TYPE_CHECKING:
    from hirank.estimators import KFMC, Imputer, OnlineImputer, OnlineKFMC

    Model: TypeAlias = Imputer | KFMC | OnlineImputer | OnlineKFMC

OUTPUTS = (None, "default", "pandas", "polars")
"""Containers that ``set_output`` accepts."""


def save(model: Model, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file: what its method ``save`` does.

    `notes` are strings and numbers for programs that use the model, stored in the header.
    """
    kind = type(model).__name__
    if _estimators().get(kind) is not type(model):
        raise TypeError(
            f"{type(model).__module__}.{kind} cannot be saved: only hirank's own estimators can, "
            "not classes derived from them."
        )
    _check(model)
    state = _state(model)
    output = getattr(model, "_sklearn_output_config", {}).get("transform")
    facts = _facts(model, state)
    if hasattr(model, "summary"):
        facts["summary"] = _plain(model.summary())
    header = {
        "hirank": version("hirank"),
        "kind": kind,
        "made_with": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "model": facts,
        "notes": dict(notes or {}),
    }
    write(path, header, {"estimator": state, "output": output})


def load(path: PathLike) -> Model:
    """Restore the model that ``save`` wrote to a file.

    It gives the same results to the bit as the one that was saved, on the same machine and with
    the same versions of NumPy, SciPy and scikit-learn; with others, up to rounding. No code from
    the file is run.

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
    header, state = read(path)
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in _estimators():
        raise ModelFileError(
            path,
            f"contains a {printable(repr(kind), 60)}, which this version of hirank does not know. "
            "Update hirank: pip install -U hirank.",
        )
    try:
        return _restore(_estimators()[kind], header, state)
    # Whatever is wrong, and however it shows: the file is not what it should be.
    except Exception as error:
        problem = printable(error) or type(error).__name__
        raise ModelFileError(
            path, f"damaged, or changed after it was saved ({problem}). {SAVE_AGAIN}"
        ) from error


def _estimators() -> dict[str, Any]:
    # Not at the top: the estimators import this module.
    from hirank.estimators import KFMC, Imputer, OnlineImputer, OnlineKFMC

    return {kind.__name__: kind for kind in (Imputer, KFMC, OnlineImputer, OnlineKFMC)}


def _is_stream(model: Any) -> bool:
    return hasattr(model, "get_state")


def _state(model: Any) -> dict[str, Any]:
    """Return everything that a model consists of, in plain parts."""
    if _is_stream(model):
        state: dict[str, Any] = model.get_state()
        return state
    params = model.get_params(deep=False)
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = None  # only fit draws from it
    names = getattr(model, "feature_names_in_", None)
    return {
        "params": {name: encode_params(value) for name, value in params.items()},
        "feature_names": None if names is None else [str(name) for name in names],
        "fitted": encode(model._fitted),
    }


def _restore(kind: Any, header: dict[str, Any], state: Any) -> Any:
    """Return the model, if nothing is wrong with it."""
    if not isinstance(state, dict) or set(state) != {"estimator", "output"}:
        raise ValueError("the state must have an estimator and an output")
    parts = state["estimator"]
    if not isinstance(parts, dict) or (hasattr(kind, "from_state") and not parts.get("stream")):
        raise ValueError("the estimator has no state")
    model = kind.from_state(parts) if hasattr(kind, "from_state") else _restore_table(kind, parts)
    _check(model)
    facts = header.get("model")
    if not isinstance(facts, dict):
        raise ValueError("the header does not describe the model")
    described = {name: value for name, value in facts.items() if name != "summary"}
    if to_json(described, None) != to_json(_facts(model, parts), None):
        raise ValueError("the header describes another model")
    if state["output"] not in OUTPUTS:
        raise ValueError("the output container is not known")
    _try_out(model)
    if state["output"] is not None:
        model.set_output(transform=state["output"])
    return model


def _restore_table(kind: Any, state: dict[str, Any]) -> Any:
    if set(state) != {"params", "feature_names", "fitted"} or not isinstance(state["params"], dict):
        raise ValueError("the estimator must have params, feature_names and fitted")
    if set(state["params"]) != set(kind._get_param_names()):
        raise ValueError("the parameters are those of another version of hirank")
    model = kind(**{name: decode_params(part, name) for name, part in state["params"].items()})
    record = FittedKFMC if kind.__name__ == "KFMC" else FittedImputer
    model.__dict__["_record"] = decode(record, state["fitted"])
    model.n_features_in_ = len(model._fitted.columns.has_values)
    if state["feature_names"] is not None:
        model.feature_names_in_ = np.array(state["feature_names"], dtype=object)
    return model


def _check(model: Any) -> None:
    """Raise if the model is not fitted, or a parameter, which may have been set since, is wrong."""
    if not _is_stream(model):
        check_is_fitted(model)
    elif getattr(model, "_stream", None) is None:
        raise NotFittedError(
            f"This {type(model).__name__} has not seen any rows yet, so there is nothing to save. "
            "Call partial_fit or fit first."
        )
    model._check_params()
    if not isinstance(model.random_state, np.random.RandomState):
        check_random_state(model.random_state)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and not (
        len(names) == model.n_features_in_ and all(isinstance(name, str) for name in names)
    ):
        raise ValueError("each feature must have a name")


def _try_out(model: Any) -> None:
    """Raise if the model cannot impute the simplest rows: parts of the column means."""
    if _is_stream(model):
        stream = model._stream
        if stream.model is None:
            return
        means, complete = stream.means(), stream.model.complete
    else:
        columns = model._fitted.columns
        means = np.zeros(model.n_features_in_)
        means[columns.has_values] = columns.scaling.mean

        def complete(rows: Any) -> Any:
            return model._fitted.complete(rows, ~np.isnan(rows))

    every_second = np.arange(len(means)) % 2 == 0
    rows = np.where([every_second, ~every_second], means, np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        filled = complete(rows)
    gaps = getattr(model, "max_gap", None) is not None  # then NaN may be right
    if not (np.isfinite(filled) | (gaps & np.isnan(filled))).all():
        raise ValueError("imputed values are not finite")


def _facts(model: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the header states about a model."""
    params = model.get_params(deep=False)
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = state["params"]["random_state"]
    return {
        "class": type(model).__name__,
        "params": _plain(params),
        "feature_names": state["feature_names"],
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
