"""Tables of any length, imputed batch by batch through Arrow with a fitted model.

Requires PyArrow: ``pip install pyarrow``. Datasets on disk, lazy data frames and results of queries
are streamed, so that memory holds a few batches only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hirank._checks import count
from hirank._text import abbreviated
from hirank._typing import Array
from hirank.estimators.validation import check_column, check_row_independent
from hirank.exceptions import InputError

if TYPE_CHECKING:
    from hirank.estimators.saving import Model

try:
    import pyarrow as pa
    import pyarrow.dataset as pads
except ImportError as error:
    raise ImportError("hirank.arrow needs PyArrow: pip install pyarrow.") from error

__all__ = ["transform"]


def transform(model: Model, source: Any, *, batch_size: int = 65_536) -> pa.RecordBatchReader:
    """Impute a table that need not fit into memory with a fitted model, as it is read.

    Parameters
    ----------
    model : Imputer, KFMC, OnlineImputer or OnlineKFMC
        Fitted, without `time` in the case of an ``Imputer``: there, neighboring rows count.
    source : path, pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, or other Arrow stream
        A path is a Parquet file, or a folder of them. Anything with ``__arrow_c_stream__`` is an
        Arrow stream, such as ``pyarrow.Table`` and ``pyarrow.RecordBatchReader``.
    batch_size : int, default=65_536
        Rows of a batch, where the source allows to choose.

    Returns
    -------
    rows : pyarrow.RecordBatchReader
        To be read once, in the order of the source. Features, found by name if the model knows
        names, are replaced by their imputed values, all other columns stay as they are, and
        indicators of missing values, if the model adds any, come last.

    Raises
    ------
    InputError
        If features are absent or not numeric.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import hirank.arrow
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3])
    >>> X[::3, 1] = np.nan
    >>> model = hirank.Imputer(max_iter=20, random_state=0).fit(X)
    >>> table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    >>> filled = hirank.arrow.transform(model, table).read_all()
    >>> bool((filled["b"].to_numpy() == model.transform(X)[:, 1]).all())
    True

    A folder of Parquet files is imputed into another one in bounded memory::

        rows = hirank.arrow.transform(model, "measurements/")
        pyarrow.dataset.write_dataset(rows, "imputed/", format="parquet")
    """
    check_is_fitted(model)
    check_row_independent(model)
    count()("batch_size", batch_size)
    schema, batches = _open(source, batch_size)
    columns = _Columns.of(model, schema)
    return pa.RecordBatchReader.from_batches(
        columns.schema, (columns.impute(model, batch) for batch in batches if batch.num_rows)
    )


class _Columns:
    """The columns of a stream: those that are imputed, and the schema of the result."""

    def __init__(self, names: list[str], imputed: list[str], schema: pa.Schema) -> None:
        self.names = names  # of the features, as the model orders them
        self.imputed = imputed  # of what the model returns
        self.dtype = np.result_type(*{_float_type(schema.field(name)) for name in names})
        for name in imputed:
            field = pa.field(name, pa.from_numpy_dtype(self.dtype))
            position = schema.get_field_index(name)
            schema = schema.append(field) if position < 0 else schema.set(position, field)
        self.schema = schema

    @classmethod
    def of(cls, model: Model, schema: pa.Schema) -> _Columns:
        """Return the columns of a stream with this schema; raise InputError if it is unsuited."""
        names = [*getattr(model, "feature_names_in_", schema.names)]
        absent = [name for name in names if name not in schema.names]
        if absent:
            raise InputError(
                f"There are no columns {abbreviated(absent)}, which the model was fitted to."
            )
        if len(names) != model.n_features_in_:
            raise InputError(
                f"The model imputes tables with {model.n_features_in_} columns; got {len(names)}: "
                f"{abbreviated(names)}."
            )
        return cls(names, [*model.get_feature_names_out(names)], schema)

    def impute(self, model: Model, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the imputed columns in place of the features."""
        values = np.empty((batch.num_rows, len(self.names)), self.dtype)
        for j, name in enumerate(self.names):
            values[:, j] = _to_floats(batch.column(name), name)
        named = hasattr(model, "feature_names_in_")
        rows = pa.table(dict(zip(self.names, values.T, strict=True))) if named else values
        filled = dict(zip(self.imputed, np.asarray(model.transform(rows)).T, strict=True))
        parts = [
            pa.array(filled[name]) if name in filled else batch.column(name)
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(parts, schema=self.schema)


def _open(source: Any, batch_size: int) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of what can be read as a stream."""
    if isinstance(source, str | Path):
        source = pads.dataset(source, format="parquet")
    if isinstance(source, pads.Dataset):
        return source.schema, source.to_batches(batch_size=batch_size)
    if hasattr(source, "collect_batches"):  # polars.LazyFrame, from 1.34 on
        frames = source.collect_batches(chunk_size=batch_size, maintain_order=True)
        schema = source.head(0).collect().to_arrow().schema
        return schema, (batch for frame in frames for batch in frame.to_arrow().to_batches())
    for method in ("to_arrow_reader", "fetch_arrow_reader"):  # DuckDB from 2.0 on, and before
        if hasattr(source, method):
            source = getattr(source, method)(batch_size)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return reader.schema, reader
    raise InputError(
        f"A {type(source).__name__} cannot be read batch by batch. Pass a path of Parquet files, a "
        "PyArrow dataset, a lazy data frame of polars 1.34 or later, a DuckDB relation, or an "
        "Arrow stream."
    )


def _float_type(field: pa.Field) -> type[np.floating[Any]]:
    """Return the floats for a column; raise InputError if it is not numeric."""
    kind = field.type
    types = pa.types
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return np.float32 if types.is_float32(kind) else np.float64
    raise InputError(f"Column {field.name} contains {kind}. Convert it to a number first.")


def _to_floats(column: pa.Array, name: str) -> Array:
    """Return a column as floats, with NaN for nulls."""
    if pa.types.is_integer(column.type):
        check_column(repr(name), column.drop_null().to_numpy(zero_copy_only=False))
    single = pa.types.is_float32(column.type)
    return column.cast(pa.float32() if single else pa.float64()).to_numpy(zero_copy_only=False)
