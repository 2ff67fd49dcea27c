"""Models that were saved and loaded: the same to the bit, on one instruction set."""

import json
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from helpers.estimators import FAST_SEARCH
from helpers.model_mutations import pack, unpack
from helpers.saved_state import differences, flatten
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hirank
from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC
from hirank.estimators.saving import from_bytes, get_state, to_bytes
from hirank.exceptions import ModelFileError
from hirank.kernels import RBF, Poly
from hirank.persistence.container import FORMAT, read, read_header, write
from hirank.selection.trial import TrialResult

QUICK = {"max_iter": 3, "random_state": 0}
STREAM = {"n_components": 5, "n_warmup": 40, "batch_size": 20, "max_iter": 5, "random_state": 0}
STREAMS = {
    "window": (OnlineImputer, {**STREAM, "window": 60}),
    "algorithm2": (OnlineKFMC, STREAM),
    "recorded": (OnlineKFMC, {**STREAM, "momentum": 0.2, "relaxation": 1.5, "record_cost": True}),
}


def tables():
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 60)
    X = np.column_stack([t, t**2, np.cos(3 * t), np.sin(2 * t)])
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = t
    factors = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 8))
    factors[rng.random(factors.shape) < 0.3] = np.nan
    groups = np.repeat([[0, 0, 0], [9, 5, -5], [-9, 9, 2]], 40, axis=0)
    slopes = np.repeat([[1, 1, 0], [1, -1, 1], [0, 1, -1]], 40, axis=0)
    local = groups + slopes * rng.normal(size=(120, 1)) + rng.normal(size=(120, 3)) / 5
    local[rng.random(local.shape) < 0.15] = np.nan
    amounts = np.exp(3 * rng.normal(size=(60, 1)) + rng.normal(size=(60, 3)) / 2)
    amounts[0, 0], amounts[::4, 1] = 1e9, np.nan
    odd = np.column_stack([X, np.full(60, 7.0), np.full(60, np.nan), np.round(5 * t)])
    return {
        "curve": X,
        "factors": factors,
        "local": local,
        "amounts": amounts,
        "odd": odd,
        "tiny": odd[:9],
        "flat": np.where(rng.random((20, 2)) < 0.2, np.nan, 3.0),
        "noise": np.where(rng.random((40, 3)) < 0.2, np.nan, rng.normal(size=(40, 3))),
    }


TABLES = tables()
CASES = {
    "plain": (Imputer, "curve", {}),
    "time": (
        Imputer,
        "curve",
        {"time": 0, "max_gap": 3, "integers": [3], "bounds": {1: (0, None)}},
    ),
    "rows in time": (Imputer, "curve", {"time": True}),
    "low rank": (Imputer, "factors", {"n_init": np.int64(1)}),
    "locally linear": (Imputer, "local", {"n_init": 2}),
    "amounts": (Imputer, "amounts", {"bounds": (0, None), "scale": "robust"}),
    "odd": (Imputer, "odd", {"add_indicator": True, "integers": "auto"}),
    "kept": (
        Imputer,
        "odd",
        {"add_indicator": True, "keep_empty_features": True, "bounds": [(-9, 9)] * 7},
    ),
    "tiny": (Imputer, "tiny", {"add_indicator": True}),
    "flat": (Imputer, "flat", {}),
    "noise": (Imputer, "noise", {"missing_values": -1, "bounds": np.full((3, 2), [-3.0, 3.0])}),
    "dictionary": (KFMC, "curve", {"n_components": 5}),
    "given": (KFMC, "curve", {"n_components": 5, "bandwidth": 2.0}),
    "poly": (KFMC, "curve", {"n_components": 5, "kernel": "poly"}),
    "kernel object": (KFMC, "curve", {"n_components": 5, "kernel": Poly(3, 0.5)}),
    "newton": (KFMC, "curve", {"n_components": 5, "solver": "newton"}),
    "damped": (
        KFMC,
        "curve",
        {"n_components": 5, "solver": "newton", "momentum": 0.2, "relaxation": 1.5},
    ),
    "odd dictionary": (KFMC, "odd", {"solver": "newton", "add_indicator": True, "bounds": (-9, 9)}),
    "flat dictionary": (KFMC, "flat", {}),
    "unscaled": (KFMC, "local", {"scale": False, "solver": "newton"}),
}


LONG = ("rows in time", "locally linear", "odd", "kept", "given", "unscaled")
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in CASES]


def quiet(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def fit(model, X):
    """Fit with a fast search; the class must be the plain one, since its name is in the file."""
    with mock.patch.object(Imputer, "_config", FAST_SEARCH):
        return quiet(model.fit, X)


def save_and_load(model, folder):
    model.save(folder / "model.hirank")
    return hirank.load(folder / "model.hirank")


@pytest.fixture(scope="module")
def fitted():
    models = {}

    def get(name):
        if name not in models:
            kind, table, params = CASES[name]
            quick = {**QUICK, "n_init": 1} if kind is Imputer else QUICK
            models[name] = fit(kind(**{**quick, **params}), TABLES[table])
        return models[name]

    return get


def attributes(model):
    """Return the fitted attributes that can be compared to the bit."""
    names = (name for name in dir(model) if name.endswith("_") and not name.startswith("_"))
    values = {name: getattr(model, name) for name in names if name != "indicator_"}
    return {name: value for name, value in values.items() if not callable(value)}


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_is_the_same_to_the_bit(name, fitted, tmp_path):
    model, X = fitted(name), TABLES[CASES[name][1]]

    loaded = save_and_load(model, tmp_path)

    assert type(loaded) is type(model)
    assert set(vars(loaded)) == set(vars(model))
    assert not differences(get_state(loaded), get_state(model))
    assert not differences(attributes(loaded), attributes(model))
    for table in (X[:30], X[:7].astype(np.float32)):
        one, two = (quiet(m.transform, table) for m in (model, loaded))
        assert one.dtype == two.dtype
        assert one.tobytes() == two.tobytes()
    assert [*loaded.get_feature_names_out()] == [*model.get_feature_names_out()]


@pytest.mark.parametrize("name", ["plain", "time", "low rank", "amounts", "tiny", "noise"])
def test_intervals_draws_and_summaries_of_a_loaded_model_are_the_same(name, fitted, tmp_path):
    model, X = fitted(name), TABLES[CASES[name][1]][:9]
    loaded = save_and_load(model, tmp_path)

    assert not differences(model.summary(), loaded.summary())
    assert str(loaded.summary()) == str(model.summary())
    if model._fitted.calibration is None:
        with pytest.raises(ValueError, match="too small to hold out"):
            loaded.interval(X)
        return
    for method, arguments in (("interval", (0.8,)), ("sample", (1, 0))):
        one, two = (np.asarray(quiet(getattr(m, method), X, *arguments)) for m in (model, loaded))
        assert one.tobytes() == two.tobytes()


def test_all_families_and_records_are_among_the_cases(fitted):
    models = [fitted(name) for name in CASES]
    imputers = [model for model in models if isinstance(model, Imputer)]
    families = {one["family"] for model in imputers for one in model.summary()["selected"]}
    states = (flatten(get_state(model)) for model in models)
    types = {leaf for state in states for path, leaf in state.items() if path.endswith("/type")}

    assert {"Dictionary", "Mixture", "Subspace"} <= types  # for the others see tests/data
    assert {"Calibration", "HeldOut", "Bounds"} <= types
    assert {"NewtonDictionary", "Algorithm3Config"} <= types
    assert {"TemporalSmoother", "TimeAxis", "TailCompression", "RBF", "Poly"} <= types
    assert len(families) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_records_are_in_an_order_that_files_keep(name, fitted):
    for path, leaf in flatten(get_state(fitted(name))).items():
        if isinstance(leaf, np.ndarray):
            assert leaf.flags.c_contiguous or leaf.flags.f_contiguous, path


def test_new_features_are_completed_the_same(fitted, tmp_path):
    model, X = fitted("dictionary"), TABLES["curve"]
    new = np.where(np.arange(60)[:, None] % 3 == 0, np.nan, X[:, [0]] ** 4)
    loaded = save_and_load(model, tmp_path)

    one, two = (m.complete_features(X, new) for m in (model, loaded))

    assert one.tobytes() == two.tobytes()


def test_data_frames_keep_their_names_and_their_container(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TABLES["curve"], columns=["time", "Größe", "array", "number"])
    params = {"bounds": {"array": (-1, 1)}, "integers": frame.columns[3:], "n_init": 1}
    model = fit(Imputer(**QUICK, **params), frame)

    loaded = save_and_load(model.set_output(transform="pandas"), tmp_path)

    pd.testing.assert_frame_equal(loaded.transform(frame), model.transform(frame))
    assert loaded.get_params()["bounds"] == {"array": (-1, 1)}
    assert loaded.get_params()["integers"] == ["number"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[["number", "array", "Größe", "time"]])


def test_a_loaded_model_can_be_cloned_fitted_and_saved_again(fitted, tmp_path):
    model, X = fitted("newton"), TABLES["curve"]
    loaded = save_and_load(model, tmp_path)
    first = (tmp_path / "model.hirank").read_bytes()

    assert save_and_load(loaded, tmp_path).n_iter_ == loaded.n_iter_
    assert (tmp_path / "model.hirank").read_bytes() == first
    assert (clone(loaded).fit_transform(X) == clone(model).fit_transform(X)).all()
    assert loaded.fit(X).n_iter_ == model.n_iter_


def test_a_family_that_failed_is_in_the_search_results(fitted, tmp_path):
    model = copy(fitted("noise"))
    failed = TrialResult(
        "low rank", "low rank", {"n_components": 0}, np.inf, np.inf, 0.0, 0.0, "why"
    )
    search = replace(model._fitted.search, trials=(failed, *model._fitted.search.trials))
    model.__dict__["_record"] = replace(model._fitted, search=search)

    loaded = save_and_load(model, tmp_path)

    assert loaded.search_results_["failure"][0] == "why"
    assert loaded.search_results_["error"][0] == np.inf


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("rows", [20, 90])
def test_a_loaded_stream_continues_to_the_bit(stream, name, rows, tmp_path):
    kind, params = STREAMS[name]
    model = kind(**params).partial_fit(stream.X[:rows])

    loaded = save_and_load(model, tmp_path)

    assert not differences(loaded.get_state(), model.get_state())
    more = stream.X[rows : rows + 50]
    one, two = (quiet(m.partial_fit_transform, more) for m in (model, loaded))
    assert one.tobytes() == two.tobytes()
    assert not differences(loaded.get_state(), model.get_state())
    if kind is OnlineKFMC:
        assert loaded.cost_ == model.cost_ > 0
    if params.get("record_cost"):
        assert len(model.cost_history_) == 20 * model.n_iter_
        assert (loaded.cost_history_ == model.cost_history_).all()


def test_a_random_state_object_is_none_in_the_file_of_a_table(tmp_path):
    model = KFMC(4, solver="newton", max_iter=3, random_state=np.random.RandomState(0))

    loaded = save_and_load(model.fit(TABLES["curve"]), tmp_path)

    assert loaded.random_state is None
    assert read_header(tmp_path / "model.hirank")["model"]["params"]["random_state"] is None


@pytest.mark.parametrize("kind", [Imputer, KFMC, OnlineImputer, OnlineKFMC])
def test_a_model_that_is_not_fitted_cannot_be_saved(kind, tmp_path):
    with pytest.raises(NotFittedError, match="nothing to save"):
        kind().save(tmp_path / "model.hirank")
    assert not [*tmp_path.iterdir()]


def test_what_could_not_be_loaded_is_not_saved(fitted, tmp_path):
    path, X = tmp_path / "model.hirank", TABLES["curve"]

    @dataclass(frozen=True)
    class Mine(RBF):
        pass

    class Own(KFMC):
        pass

    with pytest.raises(TypeError, match="it must be one of hirank's, RBF or Poly"):
        KFMC(4, kernel=Mine(2.0), solver="newton", max_iter=3).fit(X).save(path)
    with pytest.raises(TypeError, match="derived"):
        Own(4, solver="newton", max_iter=3).fit(X).save(path)
    with pytest.raises(ValueError, match="tol"):
        clone(fitted("newton")).fit(X).set_params(tol=-1).save(path)
    broken = copy(fitted("newton"))
    broken.__dict__["_record"] = replace(broken._fitted, seconds=np.nan)
    with pytest.raises(ValueError, match=r"model\.seconds: must be"):
        broken.save(path)
    with pytest.raises(FileNotFoundError):
        fitted("newton").save(tmp_path / "no folder" / "model.hirank")
    assert not [*tmp_path.iterdir()]


def test_the_header_describes_the_model(fitted, tmp_path):
    path, model = tmp_path / "model.hirank", fitted("time")
    model.save(path)

    header = read_header(path)

    assert header["kind"] == header["model"]["class"] == "Imputer"
    assert header["hirank"] == hirank.__version__
    assert header["model"]["n_features_in"] == 4
    assert header["model"]["feature_names"] is None
    assert header["model"]["params"]["bounds"] == {"1": [0, None]}
    assert header["model"]["summary"]["verdict"] == model.summary()["verdict"]
    summary = hirank.estimators.summary.Summary(header["model"]["summary"])
    assert str(summary) == str(model.summary())


def change(path, edit):
    """Edit header and state of a file; its checksum is right again."""
    header, state = read(path)
    edit(header, state)
    write(path, header, state)


def set_param(state, name, value):
    items = state["params"]["items"]
    items[:] = [[key, value if key == name else old] for key, old in items]


EDITS = {
    "model: the dictionary describes 9 features; 4 of the columns vary": lambda h, s: s["record"][
        "model"
    ].update(D=np.zeros((3, 9))),
    "model.model: there must be points": lambda h, s: s["record"]["model"].update(
        D=np.zeros((0, 4))
    ),
    "unexpected or missing speed": lambda h, s: s["params"]["items"].append(["speed", 1]),
    "unexpected or missing output": lambda h, s: s.pop("output"),
    "model.run: must be a RunInfo with the fields": lambda h, s: s["record"]["run"].pop("trace"),
    "model.run.trace: must be an array with the columns": lambda h, s: s["record"]["run"].update(
        trace=np.zeros(3)
    ),
    "another model": lambda h, s: h["model"]["params"].update(tol=0.5),
    "feature_names: must be 4 names; got 1": lambda h, s: s.update(feature_names=["a"]),
    "tol must be": lambda h, s: set_param(s, "tol", -1.0),
    "params['tol']: unknown type 'os.system'": lambda h, s: set_param(
        s, "tol", {"type": "os.system"}
    ),
    "scaling and integers must describe 2 features": lambda h, s: s["record"]["columns"].update(
        has_values=np.array([True, True])
    ),
    "model.columns.scaling: must be a Scaling": lambda h, s: s["record"]["columns"][
        "scaling"
    ].update(type="Secret"),
    "model.columns.scaling: spread must be 0 or positive": lambda h, s: s["record"]["columns"][
        "scaling"
    ].update(spread=-np.ones(4)),
    "model.columns.scaling.center: must be finite": lambda h, s: s["record"]["columns"][
        "scaling"
    ].update(center=np.full(4, np.nan)),
    "model: features must be scaled around their means": lambda h, s: s["record"]["columns"][
        "scaling"
    ].update(center=np.full(4, 2.0)),
    "model.model.settings[0].kernel: sigma must be": lambda h, s: s["record"]["model"]["settings"][
        0
    ]["kernel"].update(sigma=-1.0),
    "model.run.reason: 'tired' is not a valid StopReason": lambda h, s: s["record"]["run"].update(
        reason="tired"
    ),
    "the model is not fitted": lambda h, s: s.update(record=None),
    "output: must be one of": lambda h, s: s.update(output="R"),
    "format 7": lambda h, s: s.update(format=7),
    "damaged": lambda h, s: h.update(model=3),
}


@pytest.mark.parametrize("message", EDITS)
def test_a_changed_file_with_the_right_checksum_is_rejected(message, fitted, tmp_path):
    path = tmp_path / "model.hirank"
    fitted("newton").save(path)
    change(path, EDITS[message])

    with pytest.raises(ModelFileError) as caught:
        hirank.load(path)

    assert message in str(caught.value)
    assert "Save the model again" in str(caught.value)


@pytest.mark.parametrize("kind", ["os", None, ["KFMC"], {}])
def test_a_kind_of_model_that_is_not_known_asks_for_an_update(kind, fitted, tmp_path):
    path = tmp_path / "model.hirank"
    fitted("newton").save(path)
    change(path, lambda header, state: header.update(kind=kind))

    with pytest.raises(ModelFileError, match=r"which this version .* Update"):
        hirank.load(path)


def test_nothing_is_imported_or_run(fitted, tmp_path):
    path = tmp_path / "model.hirank"
    fitted("newton").save(path)
    parts = unpack(path.read_bytes())
    state = json.loads(parts["state.json"])
    for evil in ("__import__('os').system('false')", "os.system", "builtins.eval"):
        state["record"]["columns"]["scaling"]["type"] = evil
        parts["state.json"] = json.dumps(state).encode()
        path.write_bytes(pack([*parts.items()]))
        with pytest.raises(ModelFileError, match="must be a Scaling"):
            hirank.load(path)


MODELS = Path(__file__).parents[1] / "data" / "models"


@pytest.mark.parametrize(
    "name",
    ["imputer", "weighted", "routed", "kfmc", "newton", "online_imputer", "online_kfmc"],
)
def test_files_of_this_format_are_read(name):
    model = hirank.load(MODELS / f"{name}_{FORMAT}.hirank")
    with np.load(MODELS / f"expected_{FORMAT}.npz", allow_pickle=False) as expected:
        X, filled = expected["X"], expected[name]

    # Other machines and libraries round differently: by 5e-6 with NumPy 1.26 for the first model.
    assert quiet(model.transform, X) == pytest.approx(filled, rel=1e-4, abs=1e-4, nan_ok=True)
    if isinstance(model, Imputer):
        assert model.summary()["n_held_out"] > 0
        lower, upper = quiet(model.interval, X)
        assert (lower <= upper).all()
    if hasattr(model, "partial_fit"):
        assert model.partial_fit(X).n_samples_seen_ == 90 + len(X)
    else:
        assert model.get_feature_names_out().tolist() == ["a", "b", "c"]


def test_models_are_read_in_several_threads_without_the_warnings_of_their_check():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + rng.normal(size=(60, 3)) / 5
    frame = pd.DataFrame(X, columns=list("abc")).mask(rng.random(X.shape) < 0.2)
    data = to_bytes(Imputer(max_iter=10, random_state=0).fit(frame))  # the check has no names

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
            warnings.simplefilter("error")
            models = list(pool.map(from_bytes, [data] * 150))
    finally:
        sys.setswitchinterval(before)

    assert len(models) == 150
