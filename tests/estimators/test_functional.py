import numpy as np
import pytest

import hirank

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

QUICK = {
    "kernel": "rbf",
    "bandwidth": "path",
    "mix": False,
    "max_iter": 10,
    "random_state": 0,
}


@pytest.fixture
def frame(curved):
    frame = pd.DataFrame(curved.holes[:, :4], columns=list("dbca"), index=range(500, 620))
    frame["name"] = [f"row {i}" for i in range(120)]
    frame["count"] = np.arange(120)
    frame["maybe"] = pd.array([1, None, 3] * 40, dtype="Int64")
    return frame


def test_an_array_gives_an_array(curved):
    before = curved.holes.copy()
    filled = hirank.complete(curved.holes, **QUICK)
    np.testing.assert_array_equal(filled, hirank.KFMC(**QUICK).fit_transform(curved.holes))
    np.testing.assert_array_equal(before, curved.holes)
    assert hirank.complete(curved.holes.astype(np.float32), **QUICK).dtype == np.float32


def test_nested_lists_count_as_arrays():
    assert hirank.complete([[1.0, 2.0], [2.0, None], [3.0, 6.0]], **QUICK).shape == (3, 2)


def test_a_pandas_frame_keeps_all_but_its_holes(frame):
    before = frame.copy()
    filled = hirank.complete(frame, **QUICK)
    pd.testing.assert_frame_equal(frame, before)
    assert isinstance(filled, pd.DataFrame)
    assert list(filled.columns) == list(frame.columns)
    assert (filled.index == frame.index).all()
    pd.testing.assert_frame_equal(filled[["name", "count"]], frame[["name", "count"]])
    for column in "dbca":
        seen = frame[column].notna()
        assert (filled.loc[seen, column] == frame.loc[seen, column]).all()
    assert filled.notna().all().all()


def test_a_polars_frame_keeps_all_but_its_holes(frame):
    table = pl.DataFrame({name: frame[name].tolist() for name in frame.columns if name != "maybe"})
    table = table.with_columns(pl.col("d").fill_nan(None))
    filled = hirank.complete(table, **QUICK)
    assert isinstance(filled, pl.DataFrame)
    assert filled.columns == table.columns
    assert filled["name"].equals(table["name"])
    assert filled["count"].dtype == pl.Int64
    assert sum(filled.null_count().row(0)) == 0
    assert not filled["b"].is_nan().any()


def test_what_cannot_be_filled_is_said(frame):
    frame["empty"] = np.nan
    frame.loc[500, "name"] = None
    with pytest.warns(UserWarning, match="Columns") as caught:
        filled = hirank.complete(frame, **QUICK)
    messages = sorted(str(w.message) for w in caught)
    assert len(messages) == 2
    assert all(w.filename == __file__ for w in caught)
    assert "['name'] are not numeric" in messages[1]
    assert "['empty'] have no value at all" in messages[0]
    assert filled["empty"].isna().all()
    assert list(filled.columns) == list(frame.columns)


def test_tables_that_are_none(curved):
    with pytest.raises(TypeError, match="No column is numeric"):
        hirank.complete(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.raises(ValueError, match="two dimensions"):
        hirank.complete(np.zeros(3))
    with pytest.raises(TypeError, match="collect"):
        hirank.complete(pl.DataFrame({"a": [1.0]}).lazy())


def test_names_of_columns_may_be_numbers(curved):
    pd = pytest.importorskip("pandas")
    filled = hirank.complete(pd.DataFrame(curved.holes), max_iter=3, random_state=0)
    assert list(filled.columns) == list(range(12))
    assert not filled.isna().any().any()
