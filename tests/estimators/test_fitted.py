"""The records of what was learned, and fits that fail or are interrupted."""

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from helpers.estimators import fast_imputer, fast_kfmc
from sklearn.base import clone

from hirank import KFMC, Imputer
from hirank.core.columns import Columns
from hirank.estimators.fitted import FittedImputer, FittedKFMC
from hirank.exceptions import InputError, ParameterError


@pytest.fixture(scope="module")
def kfmc(table):
    return fast_kfmc(20).fit(table)


@pytest.fixture(params=["Imputer", "KFMC"])
def model(request, fitted, kfmc):
    """A fitted estimator, as a copy that a test may change."""
    return pickle.loads(pickle.dumps({"Imputer": fitted, "KFMC": kfmc}[request.param]))


def state(model):
    """Everything that an estimator holds, as bytes."""
    return pickle.dumps(model)


def test_a_fit_is_one_frozen_record(model):
    record = model._fitted

    assert type(record) is (FittedKFMC if isinstance(model, KFMC) else FittedImputer)
    with pytest.raises(FrozenInstanceError):
        record.seconds = 0.0
    record.check()
    learned = set(vars(model)) - set(model.get_params())
    assert learned == {"_record", "n_features_in_"}


def test_a_pickled_record_imputes_the_same_bits(model, table):
    record, observed = model._fitted, ~np.isnan(table)

    again = pickle.loads(pickle.dumps(record))

    assert {field.name for field in fields(again)} == {field.name for field in fields(record)}
    assert (again.complete(table, observed) == record.complete(table, observed)).all()
    again.check()


def test_a_clone_has_no_record_and_fits_the_same_one(model, table):
    copy = clone(model)

    assert not hasattr(copy, "_fitted")
    assert not hasattr(copy, "has_values_")
    refitted = copy.fit(table)
    assert (refitted.transform(table) == model.transform(table)).all()


def test_a_row_is_imputed_the_same_alone_and_in_any_batch(model, table):
    together = model.transform(table)
    order = np.random.default_rng(0).permutation(len(table))

    shuffled = model.transform(table[order])
    alone = np.vstack([model.transform(table[[i]]) for i in range(0, len(table), 10)])

    np.testing.assert_allclose(shuffled, together[order], rtol=0, atol=1e-9)
    np.testing.assert_allclose(alone, together[::10], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda model, X: model.set_params(bounds=(1, 0)).fit(X), ParameterError),
        (lambda model, X: model.set_params(bounds=None).fit(np.full_like(X, np.inf)), InputError),
        (lambda model, X: model.fit(np.full((3, 2), np.nan)), InputError),
        (lambda model, X: model.set_params(max_iter=0).fit(X), ParameterError),
    ],
    ids=["bounds", "infinite values", "no observed values", "parameter"],
)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model, table, spoil, kind):
    parameters, before = model.get_params(), state(model)

    with pytest.raises(kind):
        spoil(model, table)

    assert state(model.set_params(**parameters)) == before


class Interrupted(BaseException):
    """Ctrl-C in the middle of a fit."""


def test_an_interrupted_fit_leaves_the_estimator_as_it_was(model, table):
    before = state(model)

    class Stops(type(model)):
        def _fit_data(self, data):
            super()._fit_data(data)
            raise Interrupted

    model.__class__ = Stops
    with pytest.raises(Interrupted):
        model.fit(table[:, :4])
    model.__class__ = Stops.__mro__[1]

    assert state(model) == before
    assert model.n_features_in_ == 6


def test_an_interrupted_first_fit_leaves_no_trace(table):
    class Stops(Imputer):
        def _fit_data(self, data):
            raise Interrupted

    model = Stops()
    with pytest.raises(Interrupted):
        model.fit(table)

    assert not model.__sklearn_is_fitted__()
    assert set(vars(model)) == set(model.get_params())


def test_a_new_fit_forgets_the_column_names_of_the_last_one(table):
    pd = pytest.importorskip("pandas")
    model = fast_kfmc(20).fit(pd.DataFrame(table, columns=list("abcdef")))
    assert list(model.feature_names_in_) == list("abcdef")

    model.fit(table)

    assert not hasattr(model, "feature_names_in_")


def test_records_whose_parts_do_not_fit_together_are_refused(fitted, kfmc):
    with pytest.raises(ValueError, match="the dictionary describes"):
        replace(kfmc._fitted, columns=fast_columns(4)).check()
    with pytest.raises(ValueError, match="the stack describes"):
        replace(fitted._fitted, columns=fast_columns(4)).check()


def fast_columns(m):
    X = np.random.default_rng(0).normal(size=(20, m))
    return Columns.measure(X, np.ones(X.shape, bool), scale=True)


def test_has_values_and_the_indicator_are_read_from_the_record(table):
    X = np.column_stack([table, np.full(len(table), np.nan), np.ones(len(table))])
    model = fast_imputer(add_indicator=True).fit(X)

    assert model.has_values_.tolist() == [True] * 6 + [False, True]
    missing = np.isnan(X).any(axis=0)
    np.testing.assert_array_equal(model.indicator_.features_, np.flatnonzero(missing))
    assert fast_imputer().fit(table).indicator_ is None
