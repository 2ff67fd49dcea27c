"""The online baselines: streams of rows, passes over tables."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hirank.baselines import GROUSE, OnlineLRF
from hirank.metrics import missing_relative_error

EXACT = [GROUSE(3, scale=False), OnlineLRF(3, 1e-8, scale=False)]
every = pytest.mark.parametrize(
    "model", [m.set_params(random_state=0) for m in EXACT], ids=lambda m: type(m).__name__
)


@pytest.fixture(scope="module")
def low_rank():
    """Rows of rank 3, 400 x 15, with 9 observed entries in each."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 15))
    return truth, rng.random(truth.shape).argsort(axis=1) < 9


def remove_entries(table):
    return np.where(table[1], table[0], np.nan)


@every
def test_a_low_rank_stream_is_recovered_exactly(model, low_rank):
    truth, observed = low_rank
    X = remove_entries(low_rank)
    assert missing_relative_error(clone(model).fit_transform(X), truth, observed) < 1e-3
    stream = clone(model).partial_fit(X)
    for _ in range(5):
        stream.partial_fit(X)
    filled = stream.partial_fit_transform(X)
    assert missing_relative_error(filled, truth, observed) < 1e-3


@every
def test_a_high_rank_stream_is_not(model, curved):
    model = clone(model).set_params(rank=6, scale=True)
    filled = model.fit_transform(curved.X)
    assert missing_relative_error(filled, curved.truth, curved.observed) > 0.1


@every
def test_cuts_of_a_stream_do_not_matter_beyond_rounding(model, low_rank):
    X = remove_entries(low_rank)
    whole = clone(model).partial_fit(X)
    parts = clone(model)
    for start in range(0, 400, 40):
        parts.partial_fit(X[start : start + 40])
    assert parts.n_samples_seen_ == whole.n_samples_seen_ == 400
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), atol=1e-6)


@every
def test_a_subspace_that_changes_is_followed(model, low_rank):
    truth, observed = low_rank
    other = np.random.default_rng(1).normal(size=(15, 15)) * 3
    after = truth @ other
    stream = following(model, 100.0).partial_fit(remove_entries(low_rank))
    stream.partial_fit(np.where(observed, after, np.nan))
    filled = stream.partial_fit_transform(np.where(observed, after, np.nan))
    assert missing_relative_error(filled, after, observed) < 0.2


def following(model, memory):
    """The model as one would use it on a stream that changes."""
    model = clone(model).set_params(memory=memory, scale=True)
    return model.set_params(ridge="auto") if isinstance(model, OnlineLRF) else model


@every
def test_units_that_change_are_followed(model, low_rank):
    """The same rows in other units, far away."""
    truth, observed = low_rank
    moved = np.where(observed, 50 * truth + 1000, np.nan)
    stream = following(model, 60.0).partial_fit(remove_entries(low_rank))
    for _ in range(8):
        stream.partial_fit(moved)
    filled = stream.transform(moved)
    assert missing_relative_error(filled - 1000, 50 * truth, observed) < 0.2


@every
@pytest.mark.parametrize("memory", [None, 300.0])
@pytest.mark.parametrize("outlier", [1e4, 1e20, 1e200])
def test_an_outlier_does_not_destroy_the_model(model, memory, outlier, low_rank):
    truth, observed = low_rank
    X = remove_entries(low_rank)
    stream = following(model, memory).partial_fit(X)
    broken = X[:1].copy()
    broken[0, np.flatnonzero(observed[0])[0]] = outlier
    stream.partial_fit(broken)
    for _ in range(3):
        stream.partial_fit(X)
    assert missing_relative_error(stream.transform(X), truth, observed) < 0.3


@every
def test_rows_are_held_until_there_are_enough(model, low_rank):
    X = remove_entries(low_rank)
    stream = clone(model).set_params(n_warmup=100).partial_fit(X[:60])
    with pytest.raises(NotFittedError, match=r"60 rows.*n_warmup=100"):
        stream.transform(X)
    with pytest.raises(NotFittedError, match="61 rows"):
        stream.partial_fit_transform(X[60:61])  # nothing is taken
    filled = stream.partial_fit_transform(X[60:150])
    assert filled.shape == (90, 15)
    assert np.isfinite(filled).all()
    assert stream.n_samples_seen_ == 150


@every
def test_features_and_rows_without_values(model, low_rank):
    X = remove_entries(low_rank)
    X[5], X[:, 2] = np.nan, np.nan
    stream = clone(model)
    with pytest.warns(UserWarning, match="columns without any value empty: 2"):
        stream.partial_fit(X[:250])
    X[300] = np.nan
    with pytest.warns(UserWarning, match="Imputed 1 row"):
        assert stream.partial_fit_transform(X[250:]).shape == (150, 14)
    with pytest.raises(ValueError, match="no observed values"):
        clone(model).partial_fit(np.full((200, 3), np.nan))
    with pytest.raises(ValueError, match=r"No feature varies.*larger n_warmup"):
        clone(model).partial_fit(np.full((200, 3), 4.0))


@every
def test_a_feature_that_begins_to_vary_is_learned(model, low_rank):
    truth, observed = low_rank
    late = truth.copy()
    late[:250, 4] = 2.0
    stream = following(model, 80.0).partial_fit(np.where(observed, late, np.nan))
    for _ in range(5):
        stream.partial_fit(np.where(observed, truth, np.nan))
    filled = stream.transform(np.where(observed, truth, np.nan))
    missing = ~observed[:, 4]
    error = np.abs(filled - truth)[missing, 4].mean()
    assert error < 0.1 * truth[:, 4].std()


@every
def test_fit_forgets_and_partial_fit_goes_on(model, low_rank):
    X = remove_entries(low_rank)
    fitted = clone(model).partial_fit(-3 * X).fit(X)
    assert (fitted.transform(X) == clone(model).fit(X).transform(X)).all()
    seen = fitted.n_samples_seen_
    assert fitted.partial_fit(X).n_samples_seen_ == seen + 400
    with pytest.raises(ValueError, match="features"):
        fitted.partial_fit(X[:, :5])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GROUSE(16), "rank=16 is more than the table allows"),
        (GROUSE(step=0), "step.*above 0"),
        (GROUSE(cut=-1), "cut"),
        (GROUSE(n_warmup=1), "n_warmup.*at least 2"),
        (OnlineLRF(ridge=0), "ridge.*above 0"),
        (OnlineLRF(memory=0), "memory.*above 0"),
        (OnlineLRF(n_passes=0), "n_passes"),
    ],
    ids=str,
)
def test_wrong_parameters_are_errors_that_say_what_to_give(model, message, low_rank):
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            method(remove_entries(low_rank))


@every
def test_a_fit_that_fails_late_leaves_the_stream_going(model, low_rank):
    X = remove_entries(low_rank)
    stream = clone(model).set_params(memory=100.0).partial_fit(X)
    with pytest.raises(ValueError, match="rank=3 is more than the table allows"):
        stream.fit(X[:, :2])
    same = clone(model).set_params(memory=100.0).partial_fit(X)
    assert (stream.partial_fit_transform(X) == same.partial_fit_transform(X)).all()
    held = clone(model).partial_fit(X[:50]).fit(X)
    assert not hasattr(held, "_held")
