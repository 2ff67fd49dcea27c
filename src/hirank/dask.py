"""Dask collections, imputed partition by partition with a fitted model.

Requires Dask: ``pip install "hirank[dask]"``. The model travels as the bytes of its file, which are
a task of the graph: each worker loads it once, and a worker that is lost takes nothing along.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hirank._text import abbreviated
from hirank._typing import Array
from hirank.estimators.saving import from_bytes, to_bytes
from hirank.estimators.validation import check_row_independent
from hirank.exceptions import ClusterVersionWarning, InputError, warn

if TYPE_CHECKING:
    from hirank.estimators.saving import Model

try:
    import dask
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
except ImportError as error:
    raise ImportError('hirank.dask needs Dask: pip install "hirank[dask]".') from error

__all__ = ["transform"]


def transform(model: Model, X: Any) -> Any:
    """Impute a Dask array or data frame with a fitted model, when it is computed.

    The result is the same to the bit as that of ``model.transform`` on the whole table, with the
    same versions of hirank and NumPy and the same compiled core on all workers.

    Parameters
    ----------
    model : Imputer, KFMC, OnlineImputer or OnlineKFMC
        Fitted, without `time` in the case of an ``Imputer``: there, neighboring rows count.
    X : dask.array.Array or dask.dataframe.DataFrame
        With the features that the model was fitted to: those of a data frame are found by name.

    Returns
    -------
    X : of the same type, lazy
        With the same partitions. Of an array, the columns that ``model.transform`` returns. In a
        data frame, features are replaced by their imputed values, all other columns stay as they
        are, and indicators of missing values, if the model adds any, come last.

    Raises
    ------
    InputError
        If features are absent, or, when the result is computed, a partition contains text.
    RuntimeError
        If hirank is not installed on all workers of the cluster that is connected.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import hirank.dask
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3])
    >>> X[::3, 1] = np.nan
    >>> model = hirank.Imputer(max_iter=20, random_state=0).fit(X)
    >>> filled = hirank.dask.transform(model, da.from_array(X, chunks=(20, 3)))
    >>> bool((filled.compute() == model.transform(X)).all())
    True
    """
    check_is_fitted(model)
    check_row_independent(model)
    if not isinstance(X, da.Array | dd.DataFrame):
        raise TypeError(
            f"X must be a Dask array or data frame; got {type(X).__name__}. For other tables, call "
            "model.transform(X)."
        )
    _check_cluster()
    packed = dask.delayed(PackedModel.pack(model), pure=True)
    return (_transform_array if isinstance(X, da.Array) else _transform_frame)(model, X, packed)


@dataclass(frozen=True)
class PackedModel:
    """A fitted model as the bytes of its file."""

    data: bytes
    digest: str

    @classmethod
    def pack(cls, model: Model) -> PackedModel:
        data = to_bytes(model)
        return cls(data, hashlib.sha256(data).hexdigest())

    def __dask_tokenize__(self) -> str:
        return self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @lru_cache(maxsize=2)  # noqa: B019
    def unpack(self) -> Model:
        """Return the model, which a process loads once; the last two stay in memory."""
        return from_bytes(self.data)


def _transform_array(model: Model, X: da.Array, packed: Any) -> da.Array:
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise InputError(
            f"The model imputes tables with {model.n_features_in_} columns; X has the shape "
            f"{X.shape}."
        )
    X = X.rechunk({1: -1})
    empty = np.empty((0, len(model.get_feature_names_out())), _float_type([X.dtype]))
    return X.map_blocks(
        _impute_block, packed, empty, chunks=(X.chunks[0], (empty.shape[1],)), meta=empty
    )


def _impute_block(rows: Any, packed: PackedModel, empty: Array) -> Array:
    """Return rows imputed, as an array like `empty`."""
    return np.asarray(packed.unpack().transform(rows)) if len(rows) else empty


def _transform_frame(model: Model, X: dd.DataFrame, packed: Any) -> dd.DataFrame:
    names = getattr(model, "feature_names_in_", X.columns).tolist()
    absent = [name for name in names if name not in X.columns]
    if absent:
        raise InputError(f"X has no columns {abbreviated(absent)}, which the model was fitted to.")
    text = [name for name in names if not pd.api.types.is_numeric_dtype(X._meta.dtypes[name])]
    if text:
        raise InputError(
            f"Columns {abbreviated(text)} are declared as {X._meta.dtypes[text[0]]}. Convert them "
            "first, for instance with dask.dataframe.to_numeric."
        )
    imputed = model.get_feature_names_out(names).tolist()
    dtype = _float_type(X._meta.dtypes[names])
    arguments = (packed, names, imputed, dtype)
    return X.map_partitions(_impute_part, *arguments, meta=_replaced(X._meta, imputed, dtype))


def _impute_part(
    rows: pd.DataFrame, packed: PackedModel, names: list[str], imputed: list[str], dtype: Any
) -> pd.DataFrame:
    """Return rows of a data frame with the imputed columns in place of the features."""
    if not len(rows):
        return _replaced(rows, imputed, dtype)
    filled = np.asarray(packed.unpack().transform(rows[names]))
    if filled.dtype != dtype:
        raise InputError(
            f"A partition contains {filled.dtype} values, where the data frame is declared as "
            f"{dtype}. Call astype on the data frame first."
        )
    return rows.assign(**dict(zip(imputed, filled.T, strict=True)))


def _replaced(rows: pd.DataFrame, names: list[str], dtype: Any) -> pd.DataFrame:
    """Return a data frame without rows with columns of type `dtype`."""
    return rows.iloc[:0].assign(**dict.fromkeys(names, np.empty(0, dtype)))


def _float_type(types: Any) -> np.dtype[Any]:
    """Return the type of imputed values: float32 if all features are, otherwise double."""
    return np.dtype(np.float32 if all(type == np.float32 for type in types) else np.float64)


def _check_cluster() -> None:
    """Raise RuntimeError if workers of the connected cluster lack hirank; warn of other versions.

    Without a client of dask.distributed, tasks run in this process.
    """
    try:
        from distributed import get_client

        client: Any = get_client()
    except (ImportError, ValueError):
        return
    versions = client.get_versions(packages=["hirank"])
    mine = versions["client"]["packages"]["hirank"]
    found = {
        address: (part or {}).get("packages", {}).get("hirank")
        for address, part in {"the scheduler": versions["scheduler"], **versions["workers"]}.items()
    }
    absent = [address for address, version in found.items() if version is None]
    if absent:
        raise RuntimeError(
            f"hirank is not installed at {abbreviated(absent)}. Install hirank {mine} in the "
            "environment of the scheduler and of all workers."
        )
    others = [f"{address} ({version})" for address, version in found.items() if version != mine]
    if others:
        warn(ClusterVersionWarning(mine, tuple(others)))
