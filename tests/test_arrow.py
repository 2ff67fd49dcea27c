"""Tables are imputed batch by batch as they are as a whole, from every source of Arrow data."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hirank
from hirank.exceptions import InputError, ParameterError

pa = pytest.importorskip("pyarrow", reason="needs PyArrow: pip install pyarrow")

import pyarrow.dataset as pads  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import hirank.arrow  # noqa: E402

NAMES = ["a", "b", "c", "d"]


def curve(n=200, seed=0):
    """Rows on a curve with missing entries, with names."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    X = np.column_stack([t, t**2, t**3, np.cos(2 * t)]) + rng.normal(size=(n, 4)) / 50
    X[rng.random(X.shape) < 0.2] = np.nan
    return pd.DataFrame(X[~np.isnan(X).all(axis=1)], columns=NAMES)


@pytest.fixture(scope="module")
def model():
    return hirank.Imputer(max_iter=20, n_init=1, random_state=0).fit(curve())


def parquet_folder(frame, folder):
    for part in range(3):
        rows = frame.iloc[part * 50 : (part + 1) * 50 if part < 2 else None]
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), folder / f"{part}.parquet")
    return folder


SOURCES = {
    "path": parquet_folder,
    "dataset": lambda frame, folder: pads.dataset(parquet_folder(frame, folder)),
    "table": lambda frame, _: pa.Table.from_pandas(frame),
    "reader": lambda frame, _: pa.Table.from_pandas(frame).to_reader(max_chunksize=30),
    "polars": lambda frame, _: pl.from_pandas(frame),
    "lazy polars": lambda frame, _: pl.from_pandas(frame).lazy(),
    "duckdb": lambda frame, _: pytest.importorskip("duckdb").from_df(frame),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_has_the_same_bits_as_a_whole_table(model, source, tmp_path):
    if source == "lazy polars" and not hasattr(pl.LazyFrame, "collect_batches"):
        pytest.skip("needs polars 1.34 or later")
    if source == "polars" and not hasattr(pl.DataFrame, "__arrow_c_stream__"):
        pytest.skip("needs polars 1.3 or later")
    frame = curve(seed=1)
    filled = hirank.arrow.transform(model, SOURCES[source](frame, tmp_path), batch_size=40)
    np.testing.assert_array_equal(filled.read_all().to_pandas().to_numpy(), model.transform(frame))


def test_other_columns_and_their_types_stay_and_order_of_columns_does_not_count(model):
    frame = curve(seed=1)
    table = pa.table(
        {
            "d": frame["d"],
            "when": pa.array(range(len(frame)), pa.timestamp("s")),
            **{name: frame[name] for name in "cab"},
            "note": pa.array([None, *"x" * (len(frame) - 1)]),
        }
    )
    filled = hirank.arrow.transform(model, table)
    assert filled.schema == table.schema
    result = filled.read_all()
    assert result.select(["when", "note"]) == table.select(["when", "note"])
    np.testing.assert_array_equal(
        result.select(NAMES).to_pandas().to_numpy(), model.transform(frame)
    )


def test_nulls_are_missing_and_whole_numbers_become_floats(model):
    frame = curve(seed=1)
    frame["a"] = frame["a"].round()
    table = pa.table({**frame, "a": pa.array(frame["a"], pa.int64(), from_pandas=True)})
    filled = hirank.arrow.transform(model, table)
    assert filled.schema.field("a").type == pa.float64()
    np.testing.assert_array_equal(filled.read_all().to_pandas().to_numpy(), model.transform(frame))


def test_single_precision_stays():
    frame = curve(seed=1).astype(np.float32)
    model = hirank.Imputer(max_iter=20, n_init=1, random_state=0).fit(frame)
    filled = hirank.arrow.transform(model, pa.Table.from_pandas(frame))
    assert set(filled.schema.types) == {pa.float32()}
    np.testing.assert_array_equal(filled.read_all().to_pandas().to_numpy(), model.transform(frame))


def test_batches_are_read_as_they_are_asked_for(model):
    read = []

    def batches():
        for seed in range(5):
            read.append(seed)
            yield pa.RecordBatch.from_pandas(curve(seed=seed))

    source = pa.RecordBatchReader.from_batches(
        pa.schema(dict.fromkeys(NAMES, pa.float64())), batches()
    )
    filled = hirank.arrow.transform(model, source)
    filled.read_next_batch()
    assert read == [0]


def test_a_model_without_names_takes_columns_in_order():
    frame = curve(seed=1)
    model = hirank.Imputer(max_iter=20, n_init=1, random_state=0).fit(frame.to_numpy())
    filled = hirank.arrow.transform(model, pa.Table.from_pandas(frame)).read_all()
    np.testing.assert_array_equal(filled.to_pandas().to_numpy(), model.transform(frame.to_numpy()))


def test_indicators_come_last():
    frame = curve(seed=1)
    model = hirank.Imputer(max_iter=20, n_init=1, add_indicator=True, random_state=0).fit(frame)
    filled = hirank.arrow.transform(model, pa.Table.from_pandas(frame)).read_all()
    assert filled.column_names == [*NAMES, *(f"missingindicator_{name}" for name in NAMES)]
    np.testing.assert_array_equal(filled.to_pandas().to_numpy(), model.transform(frame))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"a": [1.0], "b": [2.0]}), "no columns c, d"),
        (pa.table({**{key: [1.0] for key in "abc"}, "d": ["x"]}), "Column d contains string"),
        ([[1.0, 2.0]], "A list cannot be read batch by batch"),
    ],
)
def test_what_cannot_be_imputed_is_an_error_before_anything_is_read(model, table, message):
    with pytest.raises(InputError, match=message):
        hirank.arrow.transform(model, table)


def test_whole_numbers_that_floats_cannot_hold_are_an_error(model):
    table = pa.table({**{key: [1.0] for key in "abc"}, "d": [2**53 + 1]})
    with pytest.raises(InputError, match="9007199254740993, which would change"):
        hirank.arrow.transform(model, table).read_all()


def test_a_model_that_uses_times_is_refused():
    model = hirank.Imputer(time=True, max_iter=20, n_init=1, random_state=0).fit(curve())
    with pytest.raises(ParameterError, match="Fit the model without it"):
        hirank.arrow.transform(model, pa.Table.from_pandas(curve()))


def test_without_pyarrow_the_error_names_what_to_install():
    program = "import sys; sys.modules['pyarrow'] = None; import hirank.arrow"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: hirank.arrow needs PyArrow: pip install pyarrow."
    )
