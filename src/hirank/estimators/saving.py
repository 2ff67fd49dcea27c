"""Fitted estimators as files, and back."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hirank._typing import Array, PathLike
from hirank.estimators.fitted_state import kfmc_of, state_of
from hirank.estimators.online_validation import check_online
from hirank.estimators.validation import check_count, check_flag
from hirank.persistence.container import AGAIN, ModelFileError, read, write
from hirank.persistence.encoding import said, to_json

if TYPE_CHECKING:
    from hirank.estimators.kfmc import KFMC
    from hirank.estimators.online import OnlineKFMC

OUTPUTS = (None, "default", "pandas", "polars")
"""What ``set_output`` may have been told."""


def save(model: Any, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted KFMC or OnlineKFMC to a file: what their method ``save`` does.

    `notes` are words and numbers for whoever uses the model, kept in the header.
    """
    kind = type(model).__name__
    if _kinds().get(kind) is not type(model):
        raise TypeError(
            f"{type(model).__module__}.{kind} can't be saved: only KFMC and OnlineKFMC themselves "
            "can, not classes derived from them."
        )
    if kind == "KFMC":
        check_is_fitted(model)
        _check_kfmc(model)
        state, summary = state_of(model), {"summary": _shown(model.summary())}
    else:
        if getattr(model, "_stream", None) is None:
            raise NotFittedError(
                "This OnlineKFMC has not seen any rows yet: there is nothing to save. Call "
                "partial_fit or fit first."
            )
        _check_online(model)
        state, summary = model.get_state(), {}
    output = getattr(model, "_sklearn_output_config", {}).get("transform")
    header = {
        "hirank": version("hirank"),
        "kind": kind,
        "made_with": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "model": _facts(model, state) | summary,
        "notes": dict(notes or {}),
    }
    write(path, header, {"estimator": state, "output": output})


def load(path: PathLike) -> KFMC | OnlineKFMC:
    """The model that ``save`` wrote to a file.

    It gives the same results to the bit as the one that was saved, on the same machine and with
    the same versions of NumPy, SciPy and scikit-learn; with others, up to rounding. No code is run
    that comes from the file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : KFMC or OnlineKFMC

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged or was cut off, or is from a later version. It is a
        ValueError; ``hirank.persistence.container`` has it.
    OSError
        If the file is not there or can't be read.

    See Also
    --------
    hirank.KFMC.save, hirank.OnlineKFMC.save

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import hirank
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3])
    >>> X[::3, 1] = np.nan
    >>> model = hirank.KFMC(max_iter=20, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "model.hirank"))
    ...     again = hirank.load(Path(folder, "model.hirank"))
    >>> again.stop_reason_ == model.stop_reason_
    True
    """
    header, state = read(path)
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in _kinds():
        raise ModelFileError(
            f"{path} holds a {said(repr(kind), 60)}, which this version of hirank does not know. "
            "Update hirank: pip install -U hirank."
        )
    try:
        if not isinstance(state, dict) or set(state) != {"estimator", "output"}:
            raise ValueError("it has not the parts of a model")
        return _made(kind, header, state)
    # Whatever is wrong, in whatever way it shows: the file is not what it should be.
    except Exception as error:
        what = said(error).removeprefix("The state is damaged: ") or type(error).__name__
        raise ModelFileError(
            f"{path} is damaged, or was changed after it was saved: {what}. {AGAIN}"
        ) from error


def _made(kind: str, header: dict[str, Any], state: dict[str, Any]) -> Any:
    """The model, if there is nothing wrong with it."""
    model: Any
    if kind == "KFMC":
        model = kfmc_of(_kinds()[kind], state["estimator"])
        _check_kfmc(model)
    else:
        if not isinstance(state["estimator"], dict) or state["estimator"].get("stream") is None:
            raise ValueError("it holds no stream")
        model = _kinds()[kind].from_state(state["estimator"])
        _check_online(model)
    facts = header.get("model")
    if not isinstance(facts, dict):
        raise ValueError("its header does not say what it is")
    told = {name: value for name, value in facts.items() if name != "summary"}
    if to_json(told, None) != to_json(_facts(model, state["estimator"]), None):
        raise ValueError("its header tells of another model")
    if state["output"] not in OUTPUTS:
        raise ValueError("it gives tables of an unknown kind")
    _try_out(model)
    if state["output"] is not None:
        model.set_output(transform=state["output"])
    return model


def _try_out(model: Any) -> None:
    """Raise if the model can't complete the simplest rows: the features' means, in part."""
    stream = getattr(model, "_stream", None)
    if stream is None:
        means = np.zeros(model.n_features_in_)
        means[model.has_values_] = model._scaling.mean
    elif stream.model is None:
        return
    else:
        means = stream.means()
    every_second = np.arange(len(means)) % 2 == 0
    rows = np.where([every_second, ~every_second], means, np.nan)
    observed = ~np.isnan(rows)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        filled: Array = (
            model._complete(rows, observed) if stream is None else stream.model.complete(rows)
        )
    gaps = getattr(model, "max_gap", None) is not None  # then NaN may be meant
    if not (np.isfinite(filled) | (gaps & np.isnan(filled))).all():
        raise ValueError("it fills in numbers that are not finite")


def _check_kfmc(model: Any) -> None:
    """Raise if a parameter, which a user may have set after the fit, is none."""
    model._check_all()
    check_random_state(_seed(model.random_state))


def _check_online(model: Any) -> None:
    check_online(model)
    for name in ("scale", "add_indicator"):
        check_flag(name, getattr(model, name))
    check_count("verbose", model.verbose, least=0)
    check_random_state(_seed(model.random_state))
    window = type(model._stream).__name__ == "WindowStream"
    if window != (model.mode == "window"):
        raise ValueError(f"A stream of another mode can't be saved with mode={model.mode!r}.")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) != model.n_features_in_:
        raise ValueError("it has not a name for each feature")


def _seed(random_state: Any) -> Any:
    return None if isinstance(random_state, np.random.RandomState) else random_state


def _facts(model: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """What the header tells of a model."""
    params = model.get_params(deep=False)
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = state["params"]["random_state"]
    return {
        "class": type(model).__name__,
        "params": _shown(params),
        "feature_names": state["feature_names"],
        "n_features_in": int(model.n_features_in_),
    }


def _shown(value: Any) -> Any:
    """A value such as a parameter in plain words and numbers, to be read by people."""
    if isinstance(value, Mapping):
        return {str(key): _shown(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_shown(part) for part in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    return repr(value)


def _kinds() -> dict[str, Any]:
    # Not at the top: the estimators import this module.
    from hirank.estimators.kfmc import KFMC
    from hirank.estimators.online import OnlineKFMC

    return {"KFMC": KFMC, "OnlineKFMC": OnlineKFMC}
