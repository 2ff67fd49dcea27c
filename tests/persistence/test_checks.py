"""What must hold between the fields of records, so that a changed file is not loaded."""

from dataclasses import replace

import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.online.cost import COURSE
from hirank.online.prequential import HISTORY
from hirank.optim.path import Stage

NAN, INF = np.nan, np.inf


@pytest.fixture(scope="module")
def records(models):
    """Return one record of each type, of fits to four features."""
    stack, time = models["stack"]._fitted, models["time"]._fitted
    window, algorithm2 = models["window"]._stream, models["algorithm2"]._stream
    dictionary = models["dictionary"]._fitted
    return {
        "imputer": stack,
        "time": time.time,
        "smoother": time.smoother,
        "one_model": time.smoother.smoothers[0],
        "dynamics": time.smoother.smoothers[0].dynamics,
        "kfmc": dictionary,
        "columns": stack.columns,
        "scaling": stack.columns.scaling,
        "dictionary": dictionary.model,
        "setting": dictionary.model.settings[0],
        "mixture": stack.mixture,
        "stack": stack.model,
        "weighted": models["weighted"]._fitted.model.models[0],
        "factors": models["factors"]._fitted.mixture,
        "routed": models["routed"]._fitted.model.models[0],
        "scale": stack.calibration.scale,
        "calibration": stack.calibration,
        "held_out": stack.search.held_out,
        "search": stack.search,
        "trial": stack.search.trials[0],
        "window": window,
        "buffer": window.buffer,
        "model": window.model,
        "scores": window.scores,
        "algorithm2": algorithm2,
        "algorithm2_model": algorithm2.model,
        "steps": algorithm2.model.steps,
        "cost": algorithm2.cost,
        "newton": models["poly"]._fitted.model,
    }


def ones(*shape):
    return np.ones(shape)


def bounds(v):
    return Bounds(np.full(v, -INF), np.full(v, INF))


CHANGES = [
    ("columns", {"has_values": np.zeros(4, bool)}, "at least one feature"),
    ("columns", {"has_values": np.ones(5, bool)}, "must describe 5 features"),
    ("columns", {"integers": np.zeros(3, bool)}, "must describe 4 features"),
    ("columns", {"bounds": bounds(3)}, "bounds must describe 4"),
    ("scaling", {"spread": -ones(4)}, "0 or positive"),
    ("scaling", {"center": 1e20 * ones(4)}, "not negligible"),
    ("scaling", {"spread": 1e301 * ones(4)}, r"at most 1e\+300"),
    ("dictionary", {"rounds": 0}, "1 to 30 rounds"),
    ("dictionary", {"rounds": 31}, "1 to 30 rounds"),
    ("dictionary", {"settings": ()}, "points and settings"),
    ("dictionary", {"D": np.zeros((0, 4))}, "points and settings"),
    ("dictionary", {"D": 1e200 * ones(3, 4)}, "within"),
    ("dictionary", {"bounds": bounds(3)}, "bounds must describe 4"),
    ("newton", {"D": np.zeros((0, 4))}, "points and settings"),
    ("newton", {"bounds": bounds(3)}, "bounds must describe 4"),
    ("setting", {"beta": 0.0}, "beta must be positive"),
    ("setting", {"alpha": -1.0}, "alpha not negative"),
    ("mixture", {"weights": np.zeros(0)}, "sum to 1"),
    ("factors", {"noise": np.zeros(4)}, "noise must be positive"),
    ("factors", {"loadings": ones(5, 4)}, "at most 4 factors"),
    ("factors", {"loadings": 1e9 * ones(2, 4)}, "too large for the noise"),
    ("weighted", {"weights": ones(3)}, "a weight for each of 4"),
    ("weighted", {"weights": np.zeros(4)}, "weights must be between"),
    ("weighted", {"weights": 1e9 * ones(4)}, "weights must be between"),
    ("routed", {"residuals": np.zeros(1)}, "a dictionary and a residual"),
    ("routed", {"dictionaries": ()}, "a dictionary and a residual"),
    ("stack", {"weights": np.array([2.0, -1.0])}, "weight"),
    ("stack", {"models": ()}, "a weight and a family"),
    ("stack", {"bounds": bounds(3)}, "bounds must describe 4"),
    ("scale", {"floors": np.zeros(2)}, "floors must be positive"),
    ("scale", {"limits": np.array([[1.0, 1.0], [0.0, 0.0]])}, "in order"),
    ("scale", {"level": 501.0}, "must stay below"),
    ("calibration", {"scores": np.array([1.0, 0.0])}, "sorted"),
    ("calibration", {"scores": np.zeros(0)}, "sorted"),
    ("calibration", {"scores": np.array([1e200])}, "not too large"),
    ("calibration", {"power": 1.5}, "between 0 and 1"),
    ("held_out", {"truth": np.zeros(0)}, "at least one entry"),
    ("held_out", {"rows": np.array([-1])}, "must not be negative"),
    ("held_out", {"linear": np.array([INF])}, "finite or NaN"),
    ("search", {"trials": ()}, "positive weight"),
    ("trial", {"weight": 1.5}, "between 0 and 1"),
    ("trial", {"params": {"speed": 1}}, "unknown parameter 'speed'"),
    ("trial", {"params": {"n_components": "x"}}, "unknown parameter 'n_components'"),
    ("trial", {"params": {"kernel": 1.0}}, "unknown parameter 'kernel'"),
    ("time", {"max_gap": 0}, "at least 1"),
    ("smoother", {"unit": 0.0}, "must be positive"),
    ("smoother", {"weights": ones(7, 4, 2)}, "weights must have the shape"),
    ("smoother", {"weights": 2 * ones(7, 4, 1)}, "sum to 1"),
    ("one_model", {"fill_variance": np.full(4, NAN)}, "must be positive"),
    ("dynamics", {"noise": -np.eye(4)}, "positive definite"),
    ("dynamics", {"spread": np.triu(ones(4, 4))}, "symmetric"),
    ("dynamics", {"coupling": ones(4, 3)}, "0 or 8 columns"),
    ("dynamics", {"damping": ones(4)}, "between 0 and"),
    ("dynamics", {"level": 0.0}, "must be positive"),
    ("imputer", {"calibration": "other"}, "calibration must describe"),
    ("imputer", {"smoother": "given"}, "requires a time axis"),
    ("buffer", {"filled": np.full((40, 4), NAN)}, "must be complete"),
    ("buffer", {"predicted": np.full((40, 4), INF)}, "infinite"),
    ("model", {"stages": ()}, "stages must be those"),
    ("model", {"n_stages": 0}, "stages must be those"),
    ("model", {"unit": -ones(4)}, "unit must not be negative"),
    ("model", {"unit": ones(5)}, "columns and unit"),
    ("model", {"means": np.full(4, NAN)}, "must have a mean"),
    ("model", {"low": np.full(4, INF), "high": ones(4)}, "must not exceed"),
    ("scores", {"errors": -ones(2)}, "between 0 and"),
    ("scores", {"history": np.array([(1, NAN, 1)], HISTORY)}, "between 0 and"),
    ("scores", {"history": np.array([(1, 0.5, 0)], HISTORY)}, "must have 1 to"),
    ("window", {"width": 5}, "5 features"),
    ("window", {"samples": 0}, "count all rows"),
    ("window", {"rest": 0}, "rest positive"),
    ("window", {"seed": 2**32}, "seed below"),
    ("algorithm2", {"width": 5}, "5 features"),
    ("algorithm2", {"pending": np.full((1, 4), INF)}, "no infinite value"),
    ("algorithm2", {"seed": 2**32}, "seed must be below"),
    ("steps", {"max_iter": 0}, "from 1 to 2000"),
    ("steps", {"max_iter": 10**6}, "from 1 to 2000"),
    ("steps", {"momentum": 1.0}, "momentum must be from 0 to below 1"),
    ("cost", {"history": np.array([(1, NAN)], COURSE)}, "costs must be finite"),
    ("cost", {"history": np.array([(0, 1.0)], COURSE)}, "samples positive"),
    ("algorithm2_model", {"unit": np.zeros(4)}, "unit must be positive"),
    ("algorithm2_model", {"unit": ones(3)}, "the 4 features that vary"),
]


@pytest.mark.parametrize(("name", "changes", "message"), CHANGES)
def test_a_record_rejects_fields_that_do_not_fit(name, changes, message, records):
    if changes.get("calibration") == "other":
        other = replace(records["scale"], effects=ones(3))
        changes = {"calibration": replace(records["calibration"], scale=other)}
    if changes.get("smoother") == "given":
        changes = {"smoother": records["smoother"]}
    records[name].check()

    with pytest.raises(ValueError, match=message):
        replace(records[name], **changes).check()


def test_the_parts_of_an_imputer_describe_the_same_features(records):
    imputer, held_out = records["imputer"], records["held_out"]
    other = replace(held_out, columns=held_out.columns + 4)
    with pytest.raises(ValueError, match="must be of 4 features"):
        replace(imputer, search=replace(imputer.search, held_out=other)).check()
    more = replace(held_out, by_family=np.hstack([held_out.by_family] * 2))
    with pytest.raises(ValueError, match="must be imputed by"):
        replace(imputer, search=replace(imputer.search, held_out=more)).check()
    with pytest.raises(ValueError, match="the time column 9 does not exist"):
        replace(imputer, time=replace(records["time"], column=9)).check()


def test_a_mixture_has_covariances_that_can_be_inverted(records):
    mixture = records["mixture"]
    for factor, message in ((-1, "positive definite"), (1e-308, "too small"), (1e300, "too large")):
        with pytest.raises(ValueError, match=message):
            replace(mixture, covariances=factor * mixture.covariances).check()


@pytest.mark.parametrize("stage", [Stage(0.0, 1.0), Stage(1.0, 0.0), Stage(1.0, 1.0, -1.0)])
def test_a_stage_has_positive_numbers(stage):
    with pytest.raises(ValueError, match="must be positive"):
        stage.check()
