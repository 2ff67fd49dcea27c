"""The adapter to river: river's own checks, with no expected failure, and rows of all kinds."""

import datetime
import inspect
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hirank import OnlineImputer
from hirank.exceptions import FeatureLimitWarning, InputError, ParameterError

river = pytest.importorskip("river", reason='needs river: pip install "hirank[river]"')

from river import (  # noqa: E402
    checks,
    datasets,
    linear_model,
    metrics,
    preprocessing,
    stats,
)

from hirank.river import Imputer  # noqa: E402

SMALL = next(Imputer._unit_test_params())


def rows_on_a_curve(n, seed=0):
    """Dicts of four numbers on a curve."""
    t = np.random.default_rng(seed).uniform(-1, 1, n).tolist()
    return [{"a": v, "b": v**2, "c": v**3, "d": math.cos(2 * v)} for v in t]


def learn(rows, **parameters):
    model = Imputer(**{**SMALL, "seed": 0, **parameters})
    for row in rows:
        model.learn_one(row)
    return model


@pytest.fixture(scope="module")
def started():
    return learn(rows_on_a_curve(80), n_components="auto", window=80)


def river_checks():
    return [
        pytest.param(check, id=check.__name__) for check in checks.yield_checks(Imputer(**SMALL))
    ]


@pytest.mark.parametrize("check", river_checks())
def test_river(check):
    model = Imputer(**SMALL)
    assert not model._unit_test_skips()
    check(model)


def test_the_defaults_are_those_of_the_online_imputer():
    ours = inspect.signature(Imputer).parameters
    theirs = inspect.signature(OnlineImputer).parameters
    shared = set(ours) - {"max_features", "seed"}
    assert {name: ours[name].default for name in shared} == {
        name: theirs[name].default for name in shared
    }


def test_parameters_reach_the_model():
    given = {
        "n_components": 7,
        "window": 50,
        "batch_size": 9,
        "n_warmup": 30,
        "kernel": "poly",
        "bandwidth": 2.0,
        "beta": 1e-3,
        "drift_detection": "off",
        "time": "auto",
    }
    model = Imputer(**given, seed=3).clone().model.get_params()
    assert model.items() >= given.items()
    assert model["random_state"] == 3


def test_parameters_that_cannot_be_used_are_an_error_at_once():
    with pytest.raises(ParameterError, match="window"):
        Imputer(window=1)


@pytest.mark.parametrize("missing", [None, math.nan, np.float32("nan"), pd.NA], ids=repr)
def test_missing_values_of_any_kind_are_like_absent_keys(started, missing):
    row = rows_on_a_curve(1, seed=1)[0]
    absent = {key: value for key, value in row.items() if key != "b"}
    expected = started.transform_one(absent)
    assert expected["b"] == pytest.approx(row["b"], abs=0.05)
    assert type(expected["b"]) is float
    given = {"d": row["d"], "b": missing, "a": row["a"], "c": row["c"]}
    assert started.transform_one(given) == expected
    assert list(started.transform_one(given)) == list(given)
    assert list(expected) == ["a", "c", "d", "b"]


def test_learning_treats_missing_values_like_absent_keys():
    rows = rows_on_a_curve(60)
    for row in rows[::3]:
        row["b"] = None
    a = learn(rows)
    b = learn([{k: v for k, v in row.items() if v is not None} for row in rows])
    assert a.transform_one({"a": 0.3}) == b.transform_one({"a": 0.3})


def test_the_order_of_keys_does_not_matter():
    rows = rows_on_a_curve(60)
    a = learn(rows).transform_one({"a": 0.3})
    b = learn([dict(reversed(row.items())) for row in rows]).transform_one({"a": 0.3})
    assert a == b


def test_values_come_back_as_the_objects_they_were(started):
    row = {"a": np.float32(0.5), "b": 10**20 + 1, "c": True, "name": "x", "list": [1]}
    before = dict(row)
    out = started.transform_one(row)
    assert all(out[key] is row[key] for key in row)
    assert row == before
    assert out is not row
    assert list(out) == [*row, "d"]


def test_transforming_does_not_change_the_model():
    model = learn(rows_on_a_curve(50))
    before = pickle.dumps(model)
    model.transform_one({"a": 0.1, "new": 3.0, "other": None})
    model.transform_many(pd.DataFrame({"a": [0.1, None], "new": [None, "x"]}))
    assert pickle.dumps(model) == before


def test_the_means_so_far_are_imputed_before_the_first_fit():
    model = Imputer(seed=0)
    assert model.transform_one({"a": None, "b": 2}) == {"b": 2}  # nothing is known of a
    assert model.transform_one({}) == {}
    assert math.isnan(model.recent_error)
    model.learn_one({"a": 1, "b": None})
    model.learn_one({"a": 4.0})
    assert model.transform_one({"a": math.nan, "b": None}) == {"a": 2.5}
    assert math.isnan(model.recent_error)


def test_values_that_are_not_numbers_pass_through():
    rows = [{**row, "name": "x"} for row in rows_on_a_curve(50)]
    model = learn(rows)
    assert "name" not in model.features
    assert "name" not in model.transform_one({**rows[0], "name": None})
    assert "name" not in model.transform_one({"a": 0.1})
    model.learn_one({"name": "y"})
    model.learn_one({})
    model.learn_one({"a": math.inf})
    assert model.model.n_samples_seen_ == 53  # time passes in rows without numbers
    assert model.transform_one({"a": math.inf, "b": 0.1})["a"] == math.inf
    mixed = model.transform_one({"a": "text", "b": 0.1})
    assert mixed["a"] == "text"
    assert math.isfinite(mixed["c"])


def test_booleans_are_numbers():
    rows = [{**row, "positive": row["a"] > 0} for row in rows_on_a_curve(80)]
    model = learn(rows, n_components="auto", window=80)
    high, low = (model.transform_one({"a": a, "c": a**3})["positive"] for a in (0.7, -0.7))
    assert high > 0.8
    assert low < 0.2


def test_a_late_feature_is_imputed_with_its_mean_and_then_by_the_model():
    rows = rows_on_a_curve(200)
    early = [{k: v for k, v in row.items() if k != "b"} for row in rows[:40]]
    model = learn(early, n_components="auto", window=160, batch_size=20)
    model.learn_one(rows[40])
    assert model.transform_one({"a": 0.9})["b"] == pytest.approx(rows[40]["b"])
    for row in rows[41:]:
        model.learn_one(row)
    assert model.transform_one({"a": 0.9, "c": 0.9**3})["b"] == pytest.approx(0.81, abs=0.05)


def test_a_late_feature_is_like_one_without_values():
    table = np.array([list(row.values()) for row in rows_on_a_curve(100)])
    table[:70, 3] = np.nan
    parameters = {"n_warmup": 40, "window": 80, "batch_size": 20, "random_state": 0, "time": None}
    whole = OnlineImputer(**parameters).partial_fit(table)
    grown = OnlineImputer(**parameters).partial_fit(table[:70, :3])
    grown.add_features(1)
    grown.partial_fit(table[70:])
    query = np.where(np.random.default_rng(0).random(table.shape) < 0.3, np.nan, table)
    query[:, 0] = table[:, 0]
    np.testing.assert_array_equal(whole.transform(query), grown.transform(query))


def test_features_beyond_max_features_pass_through_with_one_warning():
    model = Imputer(max_features=2, seed=0)
    with pytest.warns(FeatureLimitWarning) as caught:
        model.learn_one({"a": 1.0, "b": 2.0, "c": 3.0})
    assert (caught[0].message.max_features, caught[0].message.feature) == (2, "c")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"d": 3.0})
        assert model.transform_one({"c": 5.0}) == {"c": 5.0, "a": 1.0, "b": 2.0}


def test_with_time_rows_are_imputed_by_the_rows_before_from_the_second_one_on():
    model = Imputer(time="auto", seed=0)
    model.learn_one({"a": 5.0, "b": 1.0})
    assert model.transform_one({"a": 5.0}) == {"a": 5.0, "b": 1.0}
    for i in range(60):
        model.learn_one({"a": 5.0 + i, "b": 1.0 + i} if i % 3 else {"a": 5.0 + i, "b": None})
    assert abs(model.transform_one({"a": 65.0})["b"] - 61.0) < 1
    model.learn_one({})  # a row without values: time passes
    assert model.model.n_samples_seen_ == 62


def test_memory_is_bounded():
    model = Imputer(**SMALL, seed=0)
    table = pd.DataFrame(rows_on_a_curve(3000)).mask(
        np.random.default_rng(0).random((3000, 4)) < 0.2
    )
    model.learn_many(table[:1000])
    before = len(pickle.dumps(model))
    model.learn_many(table[1000:])
    # The last errors and their history, also bounded, are not full yet.
    assert len(pickle.dumps(model)) - before < 0.1 * table[1000:].to_numpy().nbytes
    assert model.model.n_samples_seen_ > 2900
    assert 0 < model.recent_error < 1


def test_a_pickled_model_continues_with_the_same_bits():
    rows = rows_on_a_curve(90)
    model = learn(rows[:50])
    again = pickle.loads(pickle.dumps(model))
    for row in rows[50:]:
        model.learn_one(row)
        again.learn_one(row)
    assert model.transform_one({"a": 0.3}) == again.transform_one({"a": 0.3})


class TestFrames:
    def test_rows_one_by_one_and_together_are_the_same(self):
        rows = rows_on_a_curve(90)
        for i, row in enumerate(rows):
            row.pop("abcd"[i % 4])
            row["name"] = "x"
            if i > 60:
                row["late"] = row.get("a", 0.0) + 1
        one = learn(rows)
        many = Imputer(**SMALL, seed=0)
        many.learn_many(pd.DataFrame(rows[:50]))
        many.learn_many(pd.DataFrame(rows[50:]))
        assert many.features == one.features
        assert many.transform_one({"a": 0.3}) == one.transform_one({"a": 0.3})
        out = many.transform_many(pd.DataFrame(rows[:5])).to_dict("records")
        for row, done in zip(rows, out, strict=False):
            expected = one.transform_one(row)
            assert done.pop("name") == expected.pop("name")
            assert done == pytest.approx(expected, rel=1e-6)

    def test_pandas(self, started):
        table = pd.DataFrame(rows_on_a_curve(4, seed=1), index=[7, 7, 3, 1])
        given = table.astype({"a": "float32"}).assign(name=["x", None, "y", "z"], k=[1, 2, 3, 4])
        given.iloc[0, [0, 1]] = np.nan
        given.iloc[2, 0] = np.nan
        before = given.copy()
        out = started.transform_many(given.drop(columns="c"))
        pd.testing.assert_frame_equal(given, before)
        assert list(out) == ["a", "b", "d", "name", "k", "c"]
        assert list(out.index) == [7, 7, 3, 1]
        assert out.dtypes["a"] == np.float32
        assert not out[["a", "b", "c", "d"]].isna().any(axis=None)
        pd.testing.assert_frame_equal(out[["d", "name", "k"]], given[["d", "name", "k"]])
        assert out["a"].iloc[1] == given["a"].iloc[1]

    def test_columns_of_objects_and_names_that_are_numbers(self):
        model = Imputer(seed=0, time=None)
        table = pd.DataFrame({0: [1, None, 3], 1: [True, None, False]}, dtype=object)
        model.learn_many(table)
        out = model.transform_many(table)
        assert list(out) == [0, 1]
        np.testing.assert_array_equal(out.to_numpy(float), [[1, 1], [2, 0.5], [3, 0]])
        mixed = pd.DataFrame({0: ["x", None, 3], "new": [None] * 3}, dtype=object)
        assert model.transform_many(mixed)[0].tolist() == ["x", 2.0, 3]
        assert model.transform_many(mixed)["new"].isna().all()

    def test_polars(self, started):
        table = pl.DataFrame({"a": [0.5, None], "b": [0.25, 0.0], "name": ["x", None]})
        out = started.transform_many(table)
        assert out.columns == ["a", "b", "name", "c", "d"]
        assert out["name"].to_list() == ["x", None]
        assert out.drop("name").null_count().to_numpy().sum() == 0
        assert out["c"][0] == pytest.approx(0.125, abs=0.05)
        objects = pl.DataFrame({"a": pl.Series(["x", None, 3], dtype=pl.Object)})
        assert started.transform_many(objects)["a"].to_list() == ["x", None, 3]

    def test_no_rows(self, started):
        nothing = pd.DataFrame({"a": [], "b": []})
        assert list(started.transform_many(nothing)) == ["a", "b", "c", "d"]
        started.clone().learn_many(nothing)


class TestPipeline:
    def pipeline(self):
        imputer = Imputer(**SMALL, seed=0)
        return imputer | preprocessing.StandardScaler() | linear_model.LinearRegression()

    def test_rows(self):
        model = self.pipeline()
        for i, row in enumerate(rows_on_a_curve(70)):
            target = row["a"] + row["b"]
            if i % 3 == 0:
                row["b"] = None
            assert math.isfinite(model.predict_one(row))
            model.learn_one(row, target)
        assert model.predict_one({"a": 0.9}) > model.predict_one({"a": -0.5})

    def test_frames(self):
        model = self.pipeline()
        table = pd.DataFrame(rows_on_a_curve(100))
        target = (table["a"] + table["b"]).rename("y")
        X = table.mask(np.random.default_rng(0).random(table.shape) < 0.2)
        for start in range(0, 100, 25):
            part = slice(start, start + 25)
            model.learn_many(X[part], target[part])
            assert np.isfinite(model.predict_many(X[part])).all()


def test_without_river_hirank_works_and_the_error_names_what_to_install():
    code = (
        "import sys; sys.modules['river'] = None; import hirank; print('fine'); import hirank.river"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "fine"
    assert done.stderr.strip().endswith(
        'ImportError: hirank.river needs river: pip install "hirank[river]".'
    )


@pytest.mark.parametrize("seed", [1, 3])
def test_a_pipeline_on_rows_with_missing_values_learns_as_well_as_with_means(seed):
    """A constant that is imputed off by one bit is scaled to a huge value, and ruins a model."""
    rng = np.random.default_rng(seed)
    rows = [
        ({key: None if rng.random() < 0.2 else value for key, value in x.items()}, y)
        for x, y in datasets.TrumpApproval().take(120)
    ]
    errors = []
    for imputer in (
        Imputer(seed=0),
        preprocessing.StatImputer(*((key, stats.Mean()) for key in rows[0][0])),
    ):
        model = imputer | preprocessing.StandardScaler() | linear_model.LinearRegression()
        error = metrics.MAE()
        for x, y in rows:
            error.update(y, model.predict_one(x))
            model.learn_one(x, y)
        errors.append(error.get())

    assert errors[0] < 1.5 * errors[1], errors


def test_times_are_read_from_a_key_and_not_imputed():
    rows = rows_on_a_curve(60)
    start = datetime.datetime(2024, 1, 1)
    model = Imputer(**SMALL, seed=0, time="when")
    for i, row in enumerate(rows):
        model.learn_one({"when": start + datetime.timedelta(hours=i), **row})
    out = model.transform_one({"when": start + datetime.timedelta(hours=60), "a": 0.3})
    assert list(out) == ["when", "a", "b", "c", "d"]
    assert all(math.isfinite(out[key]) for key in "bcd")
    assert "when" not in model.transform_one({"a": 0.3})
    frame = pd.DataFrame(rows)
    frame.insert(0, "when", pd.date_range(start, periods=60, freq="h"))
    many = Imputer(**SMALL, seed=0, time="when")
    many.learn_many(frame)
    assert many.transform_one({"a": 0.3}) == model.transform_one({"a": 0.3})


def test_intervals_surround_missing_values_of_a_row():
    model = learn(rows_on_a_curve(120), window=80)
    ends = model.interval_one({"a": 0.3, "b": None})
    imputed = model.transform_one({"a": 0.3, "b": None})
    assert set(ends) == {"b", "c", "d"}
    assert all(lower <= imputed[key] <= upper for key, (lower, upper) in ends.items())
    assert model.interval_one(rows_on_a_curve(1)[0]) == {}
    with pytest.raises(ParameterError, match="coverage"):
        model.interval_one({"a": 0.3}, coverage=2)


def rows_of_devices(n):
    """Dicts of two devices by turns: walks that are far apart, and their doubles."""
    walks = np.cumsum(np.random.default_rng(0).normal(size=(n, 2)), axis=0) + np.array([0, 1000])
    return [
        {"device": f"pump {i % 2}", "a": float(walks[i, i % 2]), "b": 2 * float(walks[i, i % 2])}
        for i in range(n)
    ]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_rows_of_a_group_follow_each_other(library):
    rows = rows_of_devices(101)
    model = learn(rows[:100], groups="device")
    many = Imputer(**SMALL, seed=0, groups="device")
    many.learn_many(library(rows[:100]))

    out = model.transform_one({"device": "pump 0", "a": None})

    assert out["device"] == "pump 0"
    assert abs(out["a"] - rows[98]["a"]) < 10
    assert many.transform_one({"device": "pump 0", "a": None}) == out
    frame = library([{"device": "pump 0", "a": None, "b": 1.0}])
    filled = many.transform_many(frame)
    assert list(filled.columns) == ["device", "a", "b"]
    assert filled["a"][0] == many.transform_one({"device": "pump 0", "b": 1.0})["a"]


def test_forecasts_are_those_of_a_group():
    model = learn(rows_of_devices(100), groups="device")
    rows, intervals = model.forecast(3, group="pump 1")
    assert len(rows) == len(intervals) == 3
    assert set(rows[0]) == set(intervals[0]) == {"a", "b"}
    assert all(900 < row["a"] < 1100 for row in rows)
    lower, upper = intervals[0]["a"]
    assert lower < rows[0]["a"] < upper


@pytest.mark.parametrize("label", [{}, {"device": None}, {"device": math.nan}], ids=repr)
def test_a_row_without_a_label_is_an_error(label):
    model = learn(rows_of_devices(20), groups="device")
    for method in (model.learn_one, model.transform_one, model.interval_one):
        with pytest.raises(InputError, match="no label"):
            method({"a": 1.0, **label})
