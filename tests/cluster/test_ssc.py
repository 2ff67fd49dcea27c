"""Subspaces are found with and without missing entries, and unusable input is explained."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

from hirank import Imputer
from hirank.cluster import SSC, affinity_matrix
from hirank.metrics import clustering_error


def subspaces(n=40, k=3, dimension=2, features=12, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    parts = [
        rng.standard_normal((n, dimension)) @ rng.standard_normal((dimension, features))
        + offset * rng.standard_normal(features)
        for _ in range(k)
    ]
    return np.vstack(parts), np.repeat(np.arange(k), n)


@pytest.fixture(scope="module")
def linear():
    return subspaces()


@pytest.mark.parametrize("n_components", [None, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_linear_subspaces_are_found(n_components, seed):
    X, true = subspaces(seed=seed)
    model = SSC(3, affine=False, n_components=n_components, random_state=0).fit(X)
    assert clustering_error(true, model.labels_) == 0
    assert model.stop_reason_.startswith("Converged: every sample")
    assert model.completer_ is None


@pytest.mark.parametrize("seed", [0, 1])
def test_affine_subspaces_are_found(seed):
    X, true = subspaces(seed=seed, offset=1.0)
    assert clustering_error(true, SSC(3, random_state=0).fit_predict(X)) == 0


def test_parallel_lines_need_the_sum():
    """Any two points of their plane span it, but no combination with a sum of 1 leaves a line."""
    t, true = np.random.default_rng(0).uniform(-1, 1, 60), np.repeat([0, 1], 30)
    X = np.column_stack([t, 1.0 + true])
    assert clustering_error(true, SSC(2, random_state=0).fit_predict(X)) == 0
    assert clustering_error(true, SSC(2, affine=False, random_state=0).fit_predict(X)) > 0.2


def test_more_features_than_samples():
    X, true = subspaces(n=15, features=200)
    assert clustering_error(true, SSC(3, affine=False, random_state=0).fit_predict(X)) == 0


@pytest.mark.slow
def test_with_missing_entries(linear):
    X, true = linear
    observed = np.random.default_rng(1).random(X.shape) >= 0.2
    model = SSC(3, affine=False, random_state=0).fit(np.where(observed, X, np.nan))
    assert clustering_error(true, model.labels_) == 0
    assert isinstance(model.completer_, Imputer)


def test_any_completer_is_used_and_not_changed(linear):
    X, _ = linear
    X_missing = X.copy()
    X_missing[::4, 1] = np.nan
    completer = SimpleImputer()
    model = SSC(3, completer=completer, random_state=0).fit(X_missing)
    by_hand = SSC(3, random_state=0).fit(SimpleImputer().fit_transform(X_missing))
    np.testing.assert_array_equal(model.coefficients_, by_hand.coefficients_)
    assert isinstance(model.completer_, SimpleImputer)
    assert not hasattr(completer, "statistics_")


def test_order_and_scale_do_not_matter(linear):
    X, _ = linear
    noisy = X + 0.05 * np.random.default_rng(1).standard_normal(X.shape)
    order = np.random.default_rng(2).permutation(len(X))
    plain = SSC(3, random_state=0).fit(noisy)
    mixed = SSC(3, random_state=0).fit(noisy[order])
    assert clustering_error(plain.labels_[order], mixed.labels_) == 0
    huge = SSC(3, random_state=0).fit(noisy * 1e200)
    np.testing.assert_allclose(huge.affinity_matrix_, plain.affinity_matrix_, atol=1e-6)


def test_wrong_entries_need_the_outlier_term():
    X, true = subspaces(n=60, features=20)
    rng = np.random.default_rng(3)
    X[rng.random(X.shape) < 0.03] += 8
    plain = SSC(3, affine=False, random_state=0).fit_predict(X)
    robust = SSC(3, affine=False, outlier_alpha=5, random_state=0).fit_predict(X)
    assert clustering_error(true, plain) > 0.1
    assert clustering_error(true, robust) < 0.02


def test_more_pieces_than_clusters():
    """Six pairs of opposite points on the lines of two planes: pieces, merged by their angles."""
    angles = np.deg2rad([0, 10, 20])
    lines = np.column_stack([np.cos(angles), np.sin(angles), 0 * angles, 0 * angles])
    lines = np.vstack([lines, lines[:, [2, 3, 0, 1]]])
    X = np.vstack([lines, -2 * lines])
    model = SSC(2, affine=False, random_state=0).fit(X)
    assert clustering_error(np.tile([0, 0, 0, 1, 1, 1], 2), model.labels_) == 0


def test_zero_rows_get_some_label():
    for affine, offset in ((False, 0.0), (True, 1.0)):
        X, true = subspaces(offset=offset)
        with_zeros = np.vstack([X, np.zeros((2, 12))])
        labels = SSC(3, affine=affine, random_state=0).fit_predict(with_zeros)
        assert clustering_error(true, labels[:-2]) == 0


def test_constant_tables():
    for X in (np.ones((6, 3)), np.zeros((6, 3))):
        labels = SSC(2, random_state=0).fit_predict(X)
        assert set(labels) <= {0, 1}


def test_one_cluster_and_one_for_each(linear):
    X, _ = linear
    assert (SSC(1).fit_predict(X) == 0).all()
    assert (SSC(5).fit_predict(X[:5]) == np.arange(5)).all()


def test_affinity_keeps_the_largest():
    C = np.array([[0, 0.6, -0.3, 0.1], [1, 0, 0, 0], [0, 0, 0, 0], [0.25, 0.25, 0.5, 0]])
    size = affinity_matrix(C, keep=0.8)
    expected = np.array([[0, 1, 0.5, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0.5, 0.5, 1, 0]])
    np.testing.assert_allclose(size, expected + expected.T)
    np.testing.assert_array_equal(C[0], [0, 0.6, -0.3, 0.1])


def test_unfinished_codes_are_reported(linear):
    model = SSC(3, max_iter=1, random_state=0).fit(linear[0])
    assert model.n_iter_ == 1
    assert "Reached max_iter=1 for" in model.stop_reason_


def test_verbose_writes_to_standard_error(linear, capsys):
    SSC(3, verbose=1).fit(linear[0])
    assert "[SSC] 120 of 120 samples expressed" in capsys.readouterr().err


class HalfDone(SimpleImputer):
    def fit_transform(self, X, y=None):
        return X


def test_bad_tables_are_explained(linear):
    X = linear[0].copy()
    with pytest.raises(ValueError, match="n_clusters must be at most n_samples=120; got 200"):
        SSC(200).fit(X)
    with pytest.raises(ValueError, match=r"n_components must be None or at most 12.*got 13"):
        SSC(3, n_components=13).fit(X)
    with pytest.raises(ValueError, match=r"orthogonal to all others.*affine=True"):
        SSC(2, affine=False).fit(np.eye(4))
    with pytest.raises(ValueError, match=r"All coefficients are zero: alpha=1e-05.*Raise alpha"):
        SSC(3, affine=False, alpha=1e-5).fit(X)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="HalfDone did not impute X"):
        SSC(3, completer=HalfDone()).fit(X)
    X[[3, 7]] = np.nan
    with pytest.raises(ValueError, match=r"Rows 3, 7 have no observed values.*Leave them out"):
        SSC(3).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters.*integer"),
        ({"alpha": 0}, "alpha.*above 0"),
        ({"outlier_alpha": -1}, "outlier_alpha.*above 0"),
        ({"keep": 0}, "keep.*above 0"),
        ({"keep": 1.5}, "keep.*at most 1"),
        ({"n_components": 0}, "n_components.*integer"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0}, "tol.*above 0"),
    ],
)
def test_wrong_parameters_are_explained(parameters, message, linear):
    with pytest.raises(ValueError, match=message):
        SSC(**{"n_clusters": 3, **parameters}).fit(linear[0])


def test_masked_entries_are_missing(linear):
    X, _ = linear
    mask = np.random.default_rng(0).random(X.shape) < 0.1
    model = SSC(3, affine=False, completer=SimpleImputer(), random_state=0)

    labels, expected = (
        model.fit_predict(one)
        for one in (np.ma.array(np.where(mask, 1e9, X), mask=mask), np.where(mask, np.nan, X))
    )

    np.testing.assert_array_equal(labels, expected)
