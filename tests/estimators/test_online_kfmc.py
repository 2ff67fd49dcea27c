"""Algorithm 2 as an estimator: its parameters, its passes and its cost."""

import numpy as np
import pytest
from helpers.estimators import ONLINE
from helpers.saved_state import differences

from hirank import OnlineKFMC
from hirank.core.objective import sample_gradient
from hirank.exceptions import EmptyRowsWarning, ParameterError, RelaxationWarning
from hirank.metrics import missing_relative_error
from hirank.optim.algorithm3 import Algorithm3Config, run_algorithm3

SINGLE = {**ONLINE, "batch_size": 1}


@pytest.mark.parametrize("change", [{"momentum": 0.0}, {"relaxation": 1.5}], ids=str)
@pytest.mark.parametrize("settings", [ONLINE, SINGLE], ids=["batches", "single rows"])
def test_momentum_and_relaxation_change_what_is_learned(stream, settings, change):
    one, two = (OnlineKFMC(**{**settings, **c}).partial_fit(stream.X[:90]) for c in ({}, change))

    assert (one.dictionary_ != two.dictionary_).any()


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_transform_is_algorithm_3_with_the_dictionary_fixed(stream, kernel):
    damping = {"momentum": 0.3, "relaxation": 1.3}
    model = OnlineKFMC(12, kernel=kernel, scale=False, **damping, **SINGLE).partial_fit(stream.X)
    X, observed = stream.X[:50], stream.observed[:50]
    config = Algorithm3Config(**damping, max_iter=5, tol_change=1e-5)
    learned = model._stream.model

    filled = model.transform(X)

    basis = learned.setting.basis(learned.D)
    end = run_algorithm3(np.where(observed, X, 0), observed, basis, config).result()
    np.testing.assert_allclose(filled, end, rtol=0, atol=1e-8)


def test_parameters_that_are_set_later_are_used_from_then_on(stream):
    model = OnlineKFMC(**SINGLE).partial_fit(stream.X[:60])
    before = model.transform(stream.X)

    model.set_params(max_iter=50).partial_fit(stream.X[60:61])

    assert model._stream.model.steps.max_iter == 50
    assert (model.transform(stream.X) != before).any()


@pytest.mark.parametrize(
    ("parameter", "value", "problem"),
    [
        ("momentum", 1.0, "at least 0 and below 1; got 1.0"),
        ("momentum", -0.5, "at least 0 and below 1"),
        ("momentum", None, "at least 0 and below 1"),
        ("momentum", np.nan, "at least 0 and below 1"),
        ("relaxation", 0.0, "above 0"),
        ("relaxation", -1.0, "above 0"),
        ("relaxation", np.nan, "above 0"),
        ("n_passes", 0, "integer of at least 1; got 0"),
        ("record_cost", "yes", "True or False"),
        ("max_iter", 10**6, "from 1 to 2000"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_parameters_that_cannot_be_used_are_explained(stream, parameter, value, problem, method):
    model = OnlineKFMC(**{parameter: value})
    with pytest.raises(ParameterError, match=problem) as caught:
        getattr(model, method)(stream.X)
    assert caught.value.parameter == parameter
    assert model.get_state()["record"] is None


@pytest.mark.parametrize("method", ["fit", "partial_fit", "partial_fit_transform"])
def test_a_relaxation_of_at_most_1_is_a_warning_that_names_the_lemma(stream, method):
    model = OnlineKFMC(relaxation=1, **ONLINE)
    with pytest.warns(RelaxationWarning, match="Lemma 3") as caught:
        getattr(model, method)(stream.X[:60])
    assert caught[0].message.relaxation == 1
    assert caught[0].filename == __file__
    model.transform(stream.X)  # a warning would be an error here


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_cost_is_the_mean_over_rows_of_the_objective_of_the_paper(stream, kernel):
    """Each with the dictionary of its moment; alpha |phi(D)|^2 / 2 is shared by all rows so far."""
    settings = {"kernel": kernel, "alpha": 0.1, "random_state": 0, "n_warmup": 20}
    model = OnlineKFMC(10, **settings).partial_fit(stream.X[:20])
    total = 20 * model.cost_ - model._stream.cost.size
    for number in range(20, 25):
        before = model._stream.model
        row = model.partial_fit_transform(stream.X[[number]])
        basis = before.setting.basis(before.D)
        total += sample_gradient(before.scale(row)[0], basis)[0][0]

    expected = (total + 0.1 / 2 * basis.kernel.diag(before.D).sum()) / 25
    assert model.cost_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_cost_falls_while_a_stream_is_learned(stream, kernel):
    model = OnlineKFMC(20, kernel=kernel, n_warmup=40, record_cost=True, random_state=0)

    history = model.partial_fit(stream.X).cost_history_

    assert history["samples"].tolist() == [*range(1, 301)]
    assert model.cost_ == history["cost"][-1]
    assert history["cost"][-1] < 0.5 * history["cost"][19]


def test_passes_lower_the_cost_and_the_error(stream):
    """With beta fixed, since costs of different ridges cannot be compared."""
    model = OnlineKFMC(20, n_passes=4, beta=1e-2, record_cost=True, random_state=0)

    filled = model.fit_transform(stream.X)

    history = model.cost_history_
    by_pass = history["cost"][history["samples"] % 300 == 0]
    once = OnlineKFMC(20, beta=1e-2, random_state=0)
    assert model.cost_ == by_pass[-1]
    assert (np.diff(by_pass) < 0).all()
    assert once.fit(stream.X).cost_ == by_pass[0]
    errors = [
        missing_relative_error(one, stream.truth, stream.observed)
        for one in (filled, once.fit_transform(stream.X))
    ]
    assert errors[0] < errors[1]


@pytest.mark.parametrize("settings", [ONLINE, SINGLE], ids=["batches", "single rows"])
def test_the_cost_does_not_depend_on_how_rows_are_split_into_calls(stream, settings):
    whole = OnlineKFMC(record_cost=True, **settings).partial_fit(stream.X[:110])
    parts = OnlineKFMC(record_cost=True, **settings)
    for rows in np.split(stream.X[:110], [1, 30, 41, 42, 95]):
        parts.partial_fit(rows)
    assert parts.cost_ == whole.cost_
    assert not differences(parts.cost_history_, whole.cost_history_)


def test_there_is_no_cost_before_rows_are_learned_from_and_no_history_unless_asked_for(stream):
    model = OnlineKFMC(**ONLINE)
    assert not hasattr(model, "cost_")
    assert np.isnan(model.partial_fit(stream.X[:30]).cost_)
    model.partial_fit(stream.X[30:60])
    assert model.cost_ > 0
    with pytest.raises(AttributeError, match="record_cost=True"):
        model.cost_history_  # noqa: B018


def test_a_dictionary_of_complete_rows_imputes_incomplete_ones(stream):
    model = OnlineKFMC(30, n_warmup=100, random_state=0).partial_fit(stream.truth[:250])
    truth, observed = stream.truth[250:], stream.observed[250:]

    filled = model.transform(stream.X[250:])

    means = np.where(observed, truth, stream.truth[:250].mean(axis=0))
    error = missing_relative_error(filled, truth, observed)
    assert error < 0.5 * missing_relative_error(means, truth, observed)


def test_complete_tables_are_returned_as_they_are(stream):
    model = OnlineKFMC(n_passes=2, **ONLINE)
    for method in (model.fit_transform, model.transform, model.partial_fit_transform):
        assert (method(stream.truth[:60]) == stream.truth[:60]).all()
    assert np.isfinite(model.cost_)


def test_one_column(stream):
    column = stream.truth[:50, :1]
    model = OnlineKFMC(**ONLINE)
    assert (model.fit_transform(column) == column).all()
    missing = np.where(np.arange(50)[:, None] % 5 == 0, np.nan, column)
    with pytest.warns(EmptyRowsWarning):
        filled = model.transform(missing)
    np.testing.assert_allclose(filled[::5], column.mean(), atol=1e-9)
