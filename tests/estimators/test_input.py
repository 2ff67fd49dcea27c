"""Tables with empty rows and columns, extreme values, data frames, and what is not a table."""

import numpy as np
import pytest
from helpers.estimators import fast_kfmc

from hirank import KFMC, Imputer
from hirank.exceptions import EmptyRowsWarning, InputError, ParameterError, StopReason


@pytest.fixture
def X(curved):
    return curved.X.copy()


def test_empty_rows_are_imputed_with_column_means_and_one_warning(X):
    X[[3, 8]] = np.nan
    model = fast_kfmc(max_iter=10)
    for method in (model.fit_transform, model.transform):
        with pytest.warns(EmptyRowsWarning) as caught:
            filled = method(X)
        (warning,) = caught
        assert warning.message.rows == (3, 8)
        assert warning.filename == __file__
        np.testing.assert_allclose(filled[3], np.nanmean(X, axis=0))
        assert np.isfinite(filled).all()


def test_an_empty_row_does_not_influence_the_others(X):
    without = fast_kfmc(30, max_iter=10).fit_transform(X)
    with pytest.warns(EmptyRowsWarning):
        more = fast_kfmc(30, max_iter=10).fit_transform(np.vstack([X, np.full((1, 12), np.nan)]))
    np.testing.assert_array_equal(more[:-1], without)


def test_an_empty_feature_is_dropped_or_kept(X):
    X[:, 4] = np.nan
    names = [f"f{i}" for i in range(12)]
    model = fast_kfmc(max_iter=10)
    filled = model.fit_transform(X)
    assert filled.shape == model.transform(X).shape == (120, 11)
    assert list(model.get_feature_names_out(names)) == names[:4] + names[5:]
    kept = fast_kfmc(max_iter=10, keep_empty_features=True)
    assert (kept.fit_transform(X)[:, 4] == 0).all()
    np.testing.assert_array_equal(np.delete(kept.transform(X), 4, 1), model.transform(X))
    assert len(kept.get_feature_names_out(names)) == 12


def test_indicator_columns_are_those_of_features_with_missing_entries(X):
    X[:, 0] = 1.5  # nothing missing here
    model = fast_kfmc(max_iter=10, add_indicator=True)
    out = model.fit_transform(X)
    np.testing.assert_array_equal(out[:, 12:], np.isnan(X)[:, 1:])
    assert list(model.get_feature_names_out()[12:]) == [
        f"missingindicator_x{i}" for i in range(1, 12)
    ]


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_data_frames_are_returned_if_asked_for(X, output):
    frame = pytest.importorskip(output).DataFrame({f"c{i}": column for i, column in enumerate(X.T)})
    model = fast_kfmc(max_iter=10, add_indicator=True).set_output(transform=output)
    out = model.fit_transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    array = fast_kfmc(max_iter=10, add_indicator=True).fit_transform(X)
    np.testing.assert_array_equal(out.to_numpy(), array)
    assert list(model.transform(frame).columns) == list(out.columns)


def test_nulls_of_data_frames_are_missing_values(X):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = fast_kfmc(max_iter=10).fit_transform(X)
    names = [f"c{i}" for i in range(12)]
    nullable = pd.DataFrame(X, columns=names).convert_dtypes()
    nulls = pl.DataFrame(X, schema=names).fill_nan(None)
    for frame in (nullable, nulls):
        np.testing.assert_allclose(fast_kfmc(max_iter=10).fit_transform(frame), expected)


def test_constant_features_are_imputed_with_their_value(X):
    X[:, 2] = 0.1
    X[::3, 2] = np.nan
    X[:, 5] = np.where(np.isnan(X[:, 5]), np.nan, 1e9 + 1e-7)
    model = fast_kfmc(max_iter=10)
    for filled in (model.fit_transform(X), model.transform(X)):
        assert (filled[:, 2] == 0.1).all()
        assert (filled[:, 5] == 1e9 + 1e-7).all()


def test_a_table_of_constant_features():
    X = np.array([[1.0, np.nan], [1.0, 2.0], [np.nan, np.nan]])
    for model in (KFMC(), Imputer()):
        assert (model.fit_transform(X) == [1, 2]).all()
        assert (model.transform(X) == [1, 2]).all()
        assert model.status_ is StopReason.NOTHING_TO_FIT


def test_one_row_and_one_feature():
    assert (KFMC().fit_transform([[1.0, 2.0, np.nan]]) == [[1, 2]]).all()
    column = np.array([[1.0], [2.0], [np.nan], [4.0]])
    with pytest.warns(EmptyRowsWarning) as caught:
        filled = KFMC().fit_transform(column)
    assert caught[0].message.rows == (2,)
    assert filled[2] == pytest.approx(7 / 3)


@pytest.mark.filterwarnings("ignore::hirank.exceptions.FewEntriesWarning")
@pytest.mark.parametrize("kind", [Imputer, KFMC])
def test_two_rows(kind):
    filled = kind(random_state=0).fit_transform([[1.0, 2.0], [3.0, np.nan]])
    assert np.isfinite(filled).all()


def test_a_complete_table_is_returned_as_it_is(curved):
    model = fast_kfmc(max_iter=10)
    np.testing.assert_array_equal(model.fit_transform(curved.truth), curved.truth)
    np.testing.assert_array_equal(model.transform(curved.truth), curved.truth)
    assert np.isfinite(model.transform(curved.X)).all()


def test_a_table_without_observed_values_is_an_error():
    for model in (KFMC(), Imputer()):
        with pytest.raises(InputError, match="no observed values"):
            model.fit(np.full((3, 2), np.nan))


def test_missing_values_may_be_a_number(X):
    marked = np.where(np.isnan(X), -200, X)
    expected = fast_kfmc(max_iter=10).fit_transform(X)
    model = fast_kfmc(max_iter=10, missing_values=-200)
    np.testing.assert_array_equal(model.fit_transform(marked), expected)
    marked[0, 0] = np.nan  # is missing as well, whatever missing_values is
    assert np.isfinite(model.fit_transform(marked)).all()
    ints = np.where(np.isnan(X), -200, np.nan_to_num(10 * X).astype(int)).astype(int)
    filled = model.fit_transform(ints)
    assert filled.dtype == np.float64
    assert (filled[ints != -200] == ints[ints != -200]).all()
    assert not (filled == -200).any()


def test_infinite_values_are_an_error(X):
    X[0, 0] = np.inf
    with pytest.raises(InputError, match="infinity"):
        KFMC().fit(X)


def test_strings_are_an_error():
    with pytest.raises(InputError, match="could not convert string"):
        KFMC().fit([["a", "b"], ["c", "d"]])


def test_fewer_rows_than_components_are_an_error(X):
    with pytest.raises(ParameterError, match=r"n_samples=10 .*at most 10, or 'auto'"):
        KFMC(60).fit(X[:10])


def test_read_only_and_memory_mapped_tables(X, tmp_path):
    expected = fast_kfmc(max_iter=10).fit_transform(X)
    X.flags.writeable = False
    np.save(tmp_path / "table.npy", X)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    for table in (X, mapped, np.asfortranarray(X)):
        model = fast_kfmc(max_iter=10)
        np.testing.assert_array_equal(model.fit_transform(table), expected)
        assert np.isfinite(model.transform(table)).all()


def test_huge_and_tiny_numbers_are_imputed(X):
    for factor in (1e150, 1e-150):
        filled = fast_kfmc(max_iter=10).fit_transform(X * factor)
        assert np.isfinite(filled).all()
        assert np.abs(filled).max() < 10 * np.nanmax(np.abs(X)) * factor


def test_overflow_in_the_polynomial_kernel_is_explained(X):
    huge = (X * 1e30).astype(np.float32)
    assert np.isfinite(fast_kfmc(kernel="poly", degree=4).fit_transform(huge)).all()
    with pytest.raises(ValueError, match=r"overflow float64.*scale=True"):
        fast_kfmc(kernel="poly", degree=12, scale=False).fit(huge)


def test_large_values_of_the_kernel_do_not_stop_the_solver(X):
    """Gradients beyond single precision must not harm the curvature, which is single precision."""
    model = fast_kfmc(kernel="poly", degree=3, offset=0.0, scale=False, max_iter=20)
    model.fit(1e8 * X)
    first = model.trace_["objective"][model.trace_["stage"] == 0]
    assert first[-1] < 0.8 * first[0]


@pytest.mark.parametrize(
    ("parameter", "value", "problem"),
    [
        ("n_components", 0, "integer from 1 to 2000"),
        ("n_components", "many", "'auto' or an integer"),
        ("n_components", 2.5, "'auto' or an integer"),
        ("kernel", "linear", "'rbf', 'poly' or a Kernel object; got 'linear'"),
        ("bandwidth", -1, "above 0"),
        ("bandwidth", "wide", "'path' or a number"),
        ("scale", "log", "'auto', 'robust', 'standard', True or False"),
        ("degree", 0, "from 1 to 100"),
        ("offset", -1, "at least 0"),
        ("alpha", -1, "at least 0"),
        ("beta", 0, "above 0"),
        ("solver", "adam", "'lbfgs' or 'newton'"),
        ("max_iter", 0, "at least 1"),
        ("max_time", 0, "above 0"),
        ("tol", -1, "at least 0"),
        ("tol", np.nan, "at least 0"),
        ("missing_values", "?", "a number or NaN"),
        ("momentum", 1, "None or a number of at least 0 and below 1; got 1"),
        ("momentum", -0.1, "at least 0 and below 1"),
        ("momentum", np.nan, "at least 0 and below 1"),
        ("relaxation", 0, "None or a number above 0"),
        ("relaxation", -1.1, "above 0"),
        ("relaxation", np.nan, "above 0"),
        ("relaxation", "high", "above 0"),
    ],
)
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_parameters_that_cannot_be_used_are_explained(parameter, value, problem, solver, X):
    with pytest.raises(ParameterError, match=problem) as caught:
        KFMC(**{"solver": solver, parameter: value}).fit(X)

    assert caught.value.parameter == parameter
