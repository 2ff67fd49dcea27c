import subprocess
import sys

import numpy as np
import pytest
from helpers.estimators import fast_imputer, fast_kfmc

matplotlib = pytest.importorskip(
    "matplotlib", reason='needs matplotlib: pip install "hirank[plot]"'
)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from hirank import plot  # noqa: E402


@pytest.fixture(scope="module")
def fitted():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 1)) * [1, 2, 3, -1] + rng.normal(size=(60, 4)) / 4
    X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    return fast_imputer().fit(table), table


CALLS = {
    "missingness": lambda model, X, **ax: plot.missingness(X, **ax),
    "convergence": lambda model, X, **ax: plot.convergence(model, **ax),
    "candidates": lambda model, X, **ax: plot.candidates(model, **ax),
    "held_out": lambda model, X, **ax: plot.held_out(model, **ax),
    "held_out of a column": lambda model, X, **ax: plot.held_out(model, feature="b", **ax),
    "intervals": lambda model, X, **ax: plot.intervals(model, X, feature="b", **ax),
}


@pytest.fixture(params=CALLS)
def draw(request):
    return CALLS[request.param]


def test_axes_are_returned_with_labels_and_can_be_drawn(draw, fitted, tmp_path):
    ax = draw(*fitted)
    assert isinstance(ax, Axes)
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    ax.figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_given_axes_are_used(draw, fitted):
    ax = Figure().subplots()
    assert draw(*fitted, ax=ax) is ax
    assert ax.has_data()


def test_pyplot_is_left_alone(draw, fitted):
    import matplotlib.pyplot as plt

    before, settings = plt.get_fignums(), dict(matplotlib.rcParams)
    draw(*fitted)
    assert plt.get_fignums() == before
    assert dict(matplotlib.rcParams) == settings


def test_missing_entries_are_dark_and_names_are_written():
    X = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, 3.0]])
    ax = plot.missingness(X, names=["p", "q", "r"])
    np.testing.assert_array_equal(ax.images[0].get_array(), [[0, 1, 0], [1, 0, 0]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["p", "q", "r"]
    assert ax.get_title() == "33.3 % missing"


def test_large_tables_are_drawn_in_blocks():
    X = np.ones((5000, 3))
    X[:2500, 1] = np.nan
    shown = plot.missingness(X).images[0].get_array()
    assert shown.shape == (500, 3)
    assert shown.mean() == pytest.approx(1 / 6)


def test_held_out_entries_are_drawn(fitted):
    model, _ = fitted
    mine = model.held_out_["feature"] == 2
    line = plot.held_out(model, feature=2).lines[0]
    np.testing.assert_array_equal(line.get_xdata(), model.held_out_["truth"][mine])
    np.testing.assert_array_equal(line.get_ydata(), model.held_out_["imputed"][mine])
    assert len(plot.held_out(model).lines[0].get_xdata()) == len(mine)


def test_of_many_held_out_entries_some_are_drawn(fitted):
    model, _ = fitted
    ax = plot.held_out(model, max_points=10)
    assert len(ax.lines[0].get_xdata()) == 10
    assert ax.get_title() == f"{len(model.held_out_['row'])} held-out entries, 10 shown"


def test_selected_models_are_filled(fitted):
    model, _ = fitted
    results = model.search_results_
    lines = [line for line in plot.candidates(model).lines if len(line.get_xdata())]
    filled = [line for line in lines if line.get_fillstyle() == "full"]
    drawn = np.concatenate([line.get_ydata() for line in lines if line not in filled])
    selected = np.concatenate([line.get_ydata() for line in filled])
    np.testing.assert_array_equal(np.sort(drawn), np.sort(results["error"]))
    np.testing.assert_array_equal(
        np.sort(selected), np.sort(results["error"][results["weight"] > 0])
    )


@pytest.mark.parametrize("name", ["$x$", "$\\frac{", "a_name_" * 30, "two\nlines", "<b>"])
def test_any_name_of_a_column_can_be_drawn(name, tmp_path):
    ax = plot.missingness(np.array([[1.0, np.nan]]), names=[name, "other"])
    ax.figure.savefig(tmp_path / "picture.svg")


def test_intervals_are_those_of_missing_entries(fitted):
    model, X = fitted
    ax = plot.intervals(model, X, feature="b")
    lower, upper = (end[:, 1] for end in model.interval(X))
    missing = X["b"].isna().to_numpy()
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, 0, 1], lower[missing])
    np.testing.assert_allclose(segments[:, 1, 1], upper[missing])
    wider = np.array(
        plot.intervals(model, X, feature="b", coverage=0.99).collections[0].get_segments()
    )
    assert (np.ptp(wider[:, :, 1], axis=1) > np.ptp(segments[:, :, 1], axis=1)).all()


def test_columns_without_values_do_not_shift_the_others(fitted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) * [1, 1, 2, 3] + rng.normal(size=(60, 4)) / 4
    X[:, 0] = np.nan
    X[::5, 2] = np.nan
    model = fast_imputer().fit(X)
    ax = plot.intervals(model, X, feature=2)
    observed = ax.lines[0].get_ydata()
    np.testing.assert_array_equal(observed, X[~np.isnan(X[:, 2]), 2])
    with pytest.raises(ValueError, match="no observed values in fit"):
        plot.intervals(model, X, feature=0)


def test_one_dictionary_has_a_trace_and_no_trials():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[::3, 1] = np.nan
    model = fast_kfmc(4, max_iter=5).fit(X)
    ax = plot.convergence(model)
    assert len(ax.lines) == len(set(model.trace_["stage"]))
    assert ax.get_yscale() == "log"


def test_a_table_that_is_too_small_has_no_trials_to_draw():
    X = np.random.default_rng(0).normal(size=(6, 4))
    model = fast_imputer().fit(X)
    with pytest.raises(ValueError, match="held out no entries"):
        plot.held_out(model)
    with pytest.raises(ValueError, match="compared no models"):
        plot.candidates(model)


def test_wrong_features_are_named(fitted):
    model, X = fitted
    with pytest.raises(ValueError, match="feature must be one of a, b, c, d; got 'z'"):
        plot.held_out(model, feature="z")
    with pytest.raises(ValueError, match="from 0 to 3"):
        plot.intervals(model, X, feature=4)
    with pytest.raises(ValueError, match="one entry per column, 4; got 2"):
        plot.missingness(X, names=["a", "b"])


def test_without_matplotlib_the_error_names_what_to_install():
    code = (
        "import sys\nsys.modules['matplotlib'] = None\n"
        "import hirank.plot\n"
        "try:\n    hirank.plot.missingness([[1.0, 2.0]])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "hirank[plot]"' in run.stdout


def test_masked_entries_are_missing(fitted):
    model, table = fitted
    X = table.to_numpy()
    masked = np.ma.array(np.where(np.isnan(X), 1e9, X), mask=np.isnan(X))

    picture, expected = (plot.missingness(one).images[0].get_array() for one in (masked, X))
    np.testing.assert_array_equal(picture, expected)
    with pytest.warns(UserWarning, match="valid feature names"):
        seen = plot.intervals(model, masked, feature="b").lines[0].get_ydata()
    np.testing.assert_array_equal(seen, X[~np.isnan(X[:, 1]), 1])
