"""Input that is odd, empty, extreme or wrong."""

import numpy as np
import pytest
from helpers.plain import plain

from hirank import KFMC


@pytest.fixture
def holes(curved):
    return curved.holes.copy()


def test_a_sample_without_any_value_gets_the_means_and_one_warning(holes):
    holes[[3, 8]] = np.nan
    model = plain(max_iter=10)
    for method in (model.fit_transform, model.transform):
        with pytest.warns(UserWarning, match=r"2 sample\(s\).*rows 3, 8") as caught:
            filled = method(holes)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        np.testing.assert_allclose(filled[3], np.nanmean(holes, axis=0))
        assert np.isfinite(filled).all()


def test_such_a_sample_does_not_influence_the_others(holes):
    without = plain(30, max_iter=10).fit_transform(holes)
    with pytest.warns(UserWarning, match="no observed entry"):
        more = plain(30, max_iter=10).fit_transform(np.vstack([holes, np.full((1, 12), np.nan)]))
    np.testing.assert_array_equal(more[:-1], without)


def test_a_feature_without_any_value_is_dropped_or_kept(holes):
    holes[:, 4] = np.nan
    names = [f"f{i}" for i in range(12)]
    model = plain(max_iter=10)
    filled = model.fit_transform(holes)
    assert filled.shape == model.transform(holes).shape == (120, 11)
    assert list(model.get_feature_names_out(names)) == names[:4] + names[5:]
    kept = plain(max_iter=10, keep_empty_features=True)
    assert (kept.fit_transform(holes)[:, 4] == 0).all()
    np.testing.assert_array_equal(np.delete(kept.transform(holes), 4, 1), model.transform(holes))
    assert len(kept.get_feature_names_out(names)) == 12


def test_indicator_columns_follow(holes):
    holes[:, 0] = 1.5  # nothing missing here
    model = plain(max_iter=10, add_indicator=True)
    out = model.fit_transform(holes)
    np.testing.assert_array_equal(out[:, 12:], np.isnan(holes)[:, 1:])
    assert list(model.get_feature_names_out()[12:]) == [
        f"missingindicator_x{i}" for i in range(1, 12)
    ]


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_frames_in_frames_out(holes, output):
    frame = pytest.importorskip(output).DataFrame(
        {f"c{i}": column for i, column in enumerate(holes.T)}
    )
    model = plain(max_iter=10, add_indicator=True).set_output(transform=output)
    out = model.fit_transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    array = plain(max_iter=10, add_indicator=True).fit_transform(holes)
    np.testing.assert_array_equal(out.to_numpy(), array)
    assert list(model.transform(frame).columns) == list(out.columns)


def test_null_values_of_frames_are_missing(holes):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = plain(max_iter=10).fit_transform(holes)
    names = [f"c{i}" for i in range(12)]
    nullable = pd.DataFrame(holes, columns=names).convert_dtypes()
    nulls = pl.DataFrame(holes, schema=names).fill_nan(None)
    for frame in (nullable, nulls):
        np.testing.assert_allclose(plain(max_iter=10).fit_transform(frame), expected)


def test_constant_features_are_known(holes):
    holes[:, 2] = 0.1
    holes[::3, 2] = np.nan
    holes[:, 5] = np.where(np.isnan(holes[:, 5]), np.nan, 1e9 + 1e-7)
    model = plain(max_iter=10)
    for filled in (model.fit_transform(holes), model.transform(holes)):
        assert (filled[:, 2] == 0.1).all()
        assert (filled[:, 5] == 1e9 + 1e-7).all()


def test_only_constant_features():
    X = np.array([[1.0, np.nan], [1.0, 2.0], [np.nan, np.nan]])
    model = KFMC()
    filled = model.fit_transform(X)
    assert (filled == [1, 2]).all()
    assert (model.transform(X) == [1, 2]).all()
    assert model.stop_reason_.startswith("Nothing to fit")


def test_one_sample_and_one_feature():
    assert (KFMC().fit_transform([[1.0, 2.0, np.nan]]) == [[1, 2]]).all()
    X = np.array([[1.0], [2.0], [np.nan], [4.0]])
    with pytest.warns(UserWarning, match=r"1 sample\(s\)"):
        filled = KFMC(mix=False).fit_transform(X)
    assert filled[2] == pytest.approx(7 / 3)


def test_two_samples():
    filled = KFMC(random_state=0).fit_transform([[1.0, 2.0], [3.0, np.nan]])
    assert np.isfinite(filled).all()


def test_nothing_missing_gives_the_table_back(curved):
    model = plain(max_iter=10)
    np.testing.assert_array_equal(model.fit_transform(curved.truth), curved.truth)
    np.testing.assert_array_equal(model.transform(curved.truth), curved.truth)
    assert np.isfinite(model.transform(curved.holes)).all()


def test_everything_missing_is_an_error():
    with pytest.raises(ValueError, match="no observed entry"):
        KFMC().fit(np.full((3, 2), np.nan))


def test_missing_values_by_a_number(holes):
    marked = np.where(np.isnan(holes), -200, holes)
    expected = plain(max_iter=10).fit_transform(holes)
    model = plain(max_iter=10, missing_values=-200)
    np.testing.assert_array_equal(model.fit_transform(marked), expected)
    marked[0, 0] = np.nan  # is missing as well, whatever missing_values says
    assert np.isfinite(model.fit_transform(marked)).all()
    ints = np.where(np.isnan(holes), -200, np.nan_to_num(10 * holes).astype(int)).astype(int)
    filled = model.fit_transform(ints)
    assert filled.dtype == np.float64
    assert (filled[ints != -200] == ints[ints != -200]).all()
    assert not (filled == -200).any()


def test_infinite_values_are_an_error(holes):
    holes[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        KFMC().fit(holes)


def test_strings_are_an_error():
    with pytest.raises(ValueError, match="could not convert string"):
        KFMC().fit([["a", "b"], ["c", "d"]])


def test_fewer_samples_than_components_is_an_error(holes):
    with pytest.raises(ValueError, match=r"n_samples=10\).*at most 10, or n_components='auto'"):
        KFMC(60).fit(holes[:10])


def test_read_only_and_memory_mapped_tables(holes, tmp_path):
    expected = plain(max_iter=10).fit_transform(holes)
    holes.flags.writeable = False
    np.save(tmp_path / "table.npy", holes)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    for X in (holes, mapped, np.asfortranarray(holes)):
        model = plain(max_iter=10)
        np.testing.assert_array_equal(model.fit_transform(X), expected)
        assert np.isfinite(model.transform(X)).all()


def test_huge_and_tiny_numbers(holes):
    for factor in (1e150, 1e-150):
        filled = plain(max_iter=10).fit_transform(holes * factor)
        assert np.isfinite(filled).all()
        assert np.abs(filled).max() < 10 * np.nanmax(np.abs(holes)) * factor


def test_overflow_in_the_polynomial_kernel_is_explained(holes):
    X = (holes * 1e30).astype(np.float32)
    assert np.isfinite(plain(kernel="poly", degree=4).fit_transform(X)).all()
    with pytest.raises(ValueError, match=r"overflow float64.*scale=True"):
        plain(kernel="poly", degree=12, scale=False).fit(X)


def test_large_values_of_the_kernel_do_not_stop_the_solver(holes):
    """Gradients beyond single precision must not spoil the curvature's single precision."""
    model = plain(kernel="poly", degree=3, offset=0.0, scale=False, max_iter=20)
    model.fit(1e8 * holes)
    first = model.trace_["objective"][model.trace_["stage"] == 0]
    assert first[-1] < 0.8 * first[0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components.*whole number of at least 1"),
        ({"n_components": "many"}, "n_components.*whole number"),
        ({"n_components": 2.5}, "n_components.*whole number"),
        ({"kernel": "linear"}, "kernel.*'auto', 'poly', 'rbf'; got 'linear'"),
        ({"bandwidth": -1}, "bandwidth.*above 0"),
        ({"bandwidth": "wide"}, "bandwidth.*'auto' or 'path'"),
        ({"mix": "some"}, "mix must be True or False"),
        ({"n_starts": 0}, "n_starts.*whole number"),
        ({"max_time": 0}, "max_time.*above 0"),
        ({"max_gap": 3}, "max_gap needs ordered rows"),
        ({"order": "time", "max_gap": 0}, "max_gap"),
        ({"solver": "newton", "max_time": 3}, "need solver='lbfgs'"),
        ({"scale": "log"}, "scale.*'auto', 'robust', 'standard'"),
        ({"kernel": "poly", "degree": 0}, "degree"),
        ({"kernel": "poly", "offset": -1}, "offset"),
        ({"alpha": -1}, "alpha.*at least 0"),
        ({"beta": 0}, "beta.*above 0"),
        ({"solver": "adam"}, "solver.*'lbfgs', 'newton'"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"missing_values": "?"}, "missing_values must be a number or NaN"),
    ],
)
def test_wrong_parameters_are_explained(parameters, message, holes):
    with pytest.raises(ValueError, match=message):
        KFMC(**parameters).fit(holes)
