"""Saved models, for the commands that read or write them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import hirank
from hirank._text import abbreviated
from hirank._typing import Array
from hirank.estimators.saving import save
from hirank.exceptions import InputError
from hirank.io.errors import reading, writing
from hirank.persistence.container import read_header

if TYPE_CHECKING:
    from hirank.estimators.saving import Model


def load_model(path: Path) -> Model:
    """Return the model of a file; raise FileError."""
    with reading(path):
        return hirank.load(path)


def set_threads(model: Model, n_jobs: int) -> None:
    """Set the number of threads of a model; one that learns by Algorithm 2 has one thread."""
    if "n_jobs" in model.get_params(deep=False):
        model.set_params(n_jobs=n_jobs)


def save_model(model: Model, path: Path, missing: Iterable[str]) -> None:
    """Save a model with the markers of missing values, which new tables contain as well."""
    with writing(path):
        save(model, path, {"missing": list(missing)})


def load_markers(path: Path) -> list[str]:
    """Return the markers of missing values in the table that a saved model was fitted to."""
    notes = read_header(path).get("notes")
    found = notes.get("missing") if isinstance(notes, dict) else None
    return [str(marker) for marker in found] if isinstance(found, list) else []


def feature_names(model: Model) -> tuple[str, ...] | None:
    """Return the names of the columns of a model; None if it has none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def integer_names(model: Model) -> tuple[str, ...]:
    """Return the names of the columns whose imputed values are rounded to integers."""
    names = feature_names(model)
    if names is None or not isinstance(model, hirank.Imputer):
        return ()
    columns = model._fitted.columns
    return tuple(np.array(names, dtype=object)[columns.has_values][columns.decimals == 0])


def match_columns(own: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the columns of the model, `own`, that a table with columns `names` lacks.

    Raise InputError if it lacks all of them.
    """
    own, names = list(own), list(names)
    lacking = [name for name in own if name not in names]
    if own and lacking == own:
        raise InputError(
            f"None of the columns of the model is in the input. Columns of the model: "
            f"{abbreviated(own, 20)}. Columns of the input: {abbreviated(names, 20)}. Rename them."
        )
    return lacking


def describe_lacking(names: Iterable[str]) -> str:
    """Return the note about columns of the model that the input lacks."""
    return f"Columns of the model that the input lacks, which count as missing: {', '.join(names)}."


def restore_columns(filled: Array, model: Model) -> Array:
    """Return the output of a model with all its features; NaN in those that had no values."""
    m = int(model.n_features_in_)
    if not isinstance(model, hirank.Imputer | hirank.KFMC):
        return filled[:, :m]
    has_values = model.has_values_
    kept = filled[:, :m][:, has_values] if model.keep_empty_features else filled
    whole = np.full((len(filled), m), np.nan)
    whole[:, has_values] = kept[:, : int(has_values.sum())]
    return whole
