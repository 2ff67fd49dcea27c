import inspect
import warnings

import numpy as np
import pytest

import hirank
from hirank.exceptions import (
    EmptyColumnsWarning,
    FewEntriesWarning,
    InputError,
    NonNumericColumnsWarning,
    ParameterError,
)

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

FAST = {"max_time": 1e-6, "random_state": 0}  # the first trials only


@pytest.fixture
def frame(curved):
    frame = pd.DataFrame(curved.X[:, :4], columns=list("dbca"), index=range(500, 620))
    frame["name"] = [f"row {i}" for i in range(120)]
    frame["count"] = np.arange(120)
    frame["maybe"] = pd.array([1, None, 3] * 40, dtype="Int64")
    return frame


def test_an_array_gives_an_array(curved):
    before = curved.X.copy()
    filled = hirank.complete(curved.X, **FAST)
    np.testing.assert_array_equal(filled, hirank.Imputer(**FAST).fit_transform(curved.X))
    np.testing.assert_array_equal(before, curved.X)
    assert hirank.complete(curved.X.astype(np.float32), **FAST).dtype == np.float32


def test_nested_lists_count_as_arrays():
    with pytest.warns(FewEntriesWarning):
        filled = hirank.complete([[1.0, 2.0], [2.0, None], [3.0, 6.0]], **FAST)

    assert filled.shape == (3, 2)


def test_only_the_missing_values_of_a_pandas_frame_change(frame):
    before = frame.copy()
    filled = hirank.complete(frame, **FAST)
    pd.testing.assert_frame_equal(frame, before)
    assert isinstance(filled, pd.DataFrame)
    assert list(filled.columns) == list(frame.columns)
    assert (filled.index == frame.index).all()
    pd.testing.assert_frame_equal(filled[["name", "count"]], frame[["name", "count"]])
    for column in "dbca":
        seen = frame[column].notna()
        assert (filled.loc[seen, column] == frame.loc[seen, column]).all()
    assert filled.notna().all().all()


def test_only_the_missing_values_of_a_polars_frame_change(frame):
    table = pl.DataFrame({name: frame[name].tolist() for name in frame.columns if name != "maybe"})
    table = table.with_columns(pl.col("d").fill_nan(None))
    filled = hirank.complete(table, **FAST)
    assert isinstance(filled, pl.DataFrame)
    assert filled.columns == table.columns
    assert filled["name"].equals(table["name"])
    assert filled["count"].dtype == pl.Int64
    assert sum(filled.null_count().row(0)) == 0
    assert not filled["b"].is_nan().any()


def test_columns_that_cannot_be_imputed_are_warned_of(frame):
    frame["empty"] = np.nan
    frame.loc[500, "name"] = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filled = hirank.complete(frame, **FAST)
    assert all(one.filename == __file__ for one in caught)
    columns = {type(one.message): one.message.columns for one in caught}
    assert columns == {NonNumericColumnsWarning: ("name",), EmptyColumnsWarning: ("empty",)}
    assert filled["empty"].isna().all()
    assert list(filled.columns) == list(frame.columns)


def test_what_is_not_a_numeric_table_is_an_error(curved):
    with pytest.raises(InputError, match="No column is numeric"):
        hirank.complete(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.raises(InputError, match="two dimensions"):
        hirank.complete(np.zeros(3))
    with pytest.raises(InputError, match="collect"):
        hirank.complete(pl.DataFrame({"a": [1.0]}).lazy())


def test_column_names_may_be_numbers(curved):
    filled = hirank.complete(pd.DataFrame(curved.X), **FAST)
    assert list(filled.columns) == list(range(12))
    assert not filled.isna().any().any()


def test_the_seed_is_0_by_default_as_on_the_command_line():
    assert inspect.signature(hirank.complete).parameters["random_state"].default == 0


@pytest.mark.slow
def test_every_call_gives_the_same_table_unless_another_seed_is_asked_for(curved):
    X, quick = curved.X[:24, :4], {"n_init": 1, "max_iter": 1}

    first, second = (hirank.complete(X, **quick) for _ in range(2))

    np.testing.assert_array_equal(first, second)
    assert (hirank.complete(X, **quick, random_state=1) != first).any()


def test_parameters_may_name_columns_of_a_data_frame(frame):
    filled = hirank.complete(frame, integers=["maybe"], bounds={"maybe": (0, 3)}, **FAST)

    assert filled["maybe"].dtype == "Int64"
    assert filled["maybe"][frame["maybe"].isna()].between(0, 3).all()
    with pytest.raises(ParameterError, match="names column 'other', but the columns are"):
        hirank.complete(frame, integers=["other"])
