"""Values that floats cannot hold: masked entries, dates, large integers, decimals."""

import datetime
from decimal import Decimal

import narwhals.stable.v1 as nw
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hirank
from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC
from hirank.baselines import LRF, OnlineLRF
from hirank.exceptions import InputError, NonNumericColumnsWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

FAST = {"max_time": 1e-6}  # the first trials only
LARGE = 2**60 + 1
ESTIMATORS = [
    Imputer(**FAST, random_state=0),
    KFMC(5, max_iter=3, random_state=0),
    OnlineImputer(n_warmup=20, random_state=0),
    OnlineKFMC(5, n_warmup=20, random_state=0),
    LRF(2),
    OnlineLRF(2, n_warmup=20, random_state=0),
]


@pytest.fixture(params=ESTIMATORS, ids=lambda one: type(one).__name__)
def estimator(request):
    from sklearn.base import clone

    return clone(request.param)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 2)) @ rng.normal(size=(2, 4))


def frames(columns, names):
    """Yield data frames of all libraries with columns of the given Arrow types."""
    arrays = {name: pa.array(*columns[name]) for name in names}
    table = pa.table(arrays)
    yield table
    yield pl.from_arrow(table)
    yield table.to_pandas(types_mapper=pd.ArrowDtype)
    nullable = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
    nullable |= {pa.int8(): pd.Int8Dtype(), pa.float32(): pd.Float32Dtype()}
    yield table.to_pandas(types_mapper=nullable.get)


def test_masked_entries_are_missing(estimator, X):
    mask = np.random.default_rng(1).random(X.shape) < 0.1
    garbage = np.ma.array(np.where(mask, 1e9, X), mask=mask)
    expected = estimator.fit(np.where(mask, np.nan, X)).transform(np.where(mask, np.nan, X))

    filled = estimator.fit(garbage).transform(garbage)

    np.testing.assert_array_equal(filled, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, object])
def test_masked_arrays_of_other_types_are_read(dtype):
    X = np.ma.array(np.arange(120).reshape(40, 3) % 7, dtype=dtype)
    X[4, 1] = np.ma.masked

    filled = Imputer(**FAST).fit_transform(X)

    assert filled.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(filled[~X.mask], X.data[~X.mask].astype(float))


def test_complete_returns_a_masked_array_for_one(X):
    given = np.ma.array(X, mask=False)
    given[3, 1] = np.ma.masked
    given[:, 3] = np.ma.masked

    with pytest.warns(hirank.exceptions.EmptyColumnsWarning):
        filled = hirank.complete(given, **FAST)

    assert isinstance(filled, np.ma.MaskedArray)
    assert filled.mask[:, 3].all()
    assert not filled.mask[:, :3].any()
    np.testing.assert_array_equal(np.delete(filled[:, 1].data, 3), np.delete(X[:, 1], 3))


@pytest.mark.parametrize(
    "table",
    [
        np.array([["2024-01-01", "NaT"]] * 40, "datetime64[s]"),
        np.full((40, 2), np.timedelta64(5, "s")),
        np.ma.array(np.full((40, 2), np.datetime64("2024-01-01"))),
        pd.DataFrame({"0": pd.date_range("2024", periods=40), "x": np.arange(40.0)}),
        pl.DataFrame({"0": [datetime.timedelta(1), None] * 20, "x": np.arange(40.0)}),
        [[datetime.date(2024, 1, 1), 2.0]] * 40,
    ],
    ids=["dates", "durations", "masked", "pandas", "polars", "list"],
)
def test_dates_are_refused(estimator, table):
    with pytest.raises(InputError, match=r"Column '?0'? contains dates or durations. Convert"):
        estimator.fit(table)
    assert not hasattr(estimator, "n_features_in_")


def test_complete_refuses_arrays_of_dates_and_leaves_dates_of_data_frames_alone(X):
    with pytest.raises(InputError, match="contains dates"):
        hirank.complete(np.array([["2024-01-01", "NaT"]] * 40, "datetime64[s]"))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(day=pd.date_range("2024", periods=60))
    frame.loc[3, "b"] = np.nan
    pd.testing.assert_series_equal(hirank.complete(frame, **FAST)["day"], frame["day"])


@pytest.mark.parametrize(
    ("table", "label"),
    [
        (np.full((40, 2), LARGE), "0"),
        ([[0.5, LARGE]] * 40, "1"),
        ([[0.5, Decimal("0.1")]] * 40, "1"),
        (pd.DataFrame({"a": np.ones(40), "id": pd.array([LARGE, None] * 20, "Int64")}), "'id'"),
        (pl.DataFrame({"a": np.ones(40), "id": [LARGE, None] * 20}), "'id'"),
        (pa.table({"a": np.ones(40), "id": [LARGE, None] * 20}), "'id'"),
        (pl.DataFrame({"a": np.ones(40), "id": [Decimal("0.1"), None] * 20}), "'id'"),
        (np.ma.array(np.full((40, 2), LARGE)), "0"),
    ],
)
def test_numbers_that_would_change_as_floats_are_refused(table, label):
    with pytest.raises(InputError, match=f"Column {label} contains .* would change"):
        Imputer(**FAST).fit(table)


def test_masked_large_integers_are_no_obstacle():
    X = np.ma.array(np.arange(120).reshape(40, 3))
    X[4, 1] = LARGE
    X[4, 1] = np.ma.masked
    assert np.isfinite(Imputer(**FAST).fit_transform(X)).all()


def test_a_large_marker_matches_only_the_same_integer():
    X = np.random.default_rng(0).normal(size=(129, 2))
    ids = [2**60 + i for i in range(-64, 65)]
    for frame in frames(
        {"a": (X[:, 0],), "b": (X[:, 1],), "id": (ids, pa.int64())}, ["a", "b", "id"]
    ):
        filled = nw.from_native(hirank.complete(frame, missing_values=2**60, **FAST))

        changed = [
            i for i, (x, y) in enumerate(zip(filled["id"].to_list(), ids, strict=True)) if x != y
        ]
        assert set(changed) <= {64}


def test_a_marker_is_imputed_in_data_frames(X):
    X[3, 1:3] = -999.9
    frame = pd.DataFrame(X, columns=list("abcd")).astype({"c": np.float32})

    filled = hirank.complete(frame, missing_values=-999.9, **FAST)

    assert (filled.loc[3, ["b", "c"]] > -100).all()
    assert filled["c"].dtype == np.float32


@given(
    kind=st.sampled_from(["int8", "int64", "uint64", "float32", "float64"]),
    integers=st.sampled_from([None, "auto"]),
    data=st.data(),
)
@settings(max_examples=8, deadline=None, phases=[Phase.generate])
def test_observed_values_of_data_frames_come_back_to_the_bit_or_are_refused(kind, integers, data):
    if kind.startswith("float"):
        values = st.floats(-1e6, 1e6, width=int(kind[5:]))
    else:
        limits = np.iinfo(kind)
        values = st.integers(int(limits.min), int(limits.max)) | st.integers(0, 100)
    given = [*data.draw(st.lists(values, min_size=20, max_size=20)), None]
    t = np.arange(21.0)
    columns = {"t": (t,), "u": (2 * t,), "x": (given, getattr(pa, kind)())}

    for frame in frames(columns, ["t", "u", "x"]):
        try:
            out = hirank.complete(frame, integers=integers, **FAST)
        except InputError:
            assert max(map(abs, given[:-1])) > 2**53
            continue
        found = nw.from_native(out)["x"].to_list()
        assert [np.dtype(kind).type(value) for value in found[:-1]] == [
            np.dtype(kind).type(value) for value in given[:-1]
        ]
        assert [int(value) if "int" in kind else value for value in found[:-1]] == given[:-1]


def test_types_of_columns_stay_if_they_can_hold_the_imputed_values(X):
    columns = {
        "a": (X[:, 0],),
        "f": ([None, *X[1:, 1].tolist()], pa.float32()),
        "i": ([None, *range(58), 100], pa.int8()),
    }
    for frame in frames(columns, ["a", "f", "i"]):
        before = nw.from_native(frame)
        rounded = nw.from_native(hirank.complete(frame, integers=["i"], **FAST))
        assert [rounded[name].dtype for name in "afi"] == [before[name].dtype for name in "afi"]
        halves = nw.from_native(hirank.complete(frame, plausible=False, **FAST))
        assert halves["i"].dtype == nw.Float64


def test_decimals_and_booleans_are_left_as_they_are_with_a_warning(X):
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(
        price=pl.Series([Decimal("1.10"), None] * 30), flag=pl.Series([True, None] * 30)
    )
    with pytest.warns(NonNumericColumnsWarning) as caught:
        filled = hirank.complete(frame, **FAST)
    assert caught[0].message.columns == ("price", "flag")
    assert filled["price"].equals(frame["price"])
    assert filled["flag"].equals(frame["flag"])
