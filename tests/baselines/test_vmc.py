"""VMC and NLMC: the path of smoothings, and the results."""

import numpy as np
import pytest

from hirank.baselines import NLMC, VMC
from hirank.datasets import polynomial_manifolds
from hirank.metrics import missing_relative_error

both = pytest.mark.parametrize("method", [VMC, NLMC])


def table(n=100, missing=0.3, seed=0, **kwargs):
    truth = polynomial_manifolds(n, 12, latent=2, random_state=seed, **kwargs)
    observed = np.random.default_rng(seed).random(truth.shape) >= missing
    return truth, observed, np.where(observed, truth, np.nan)


@both
def test_the_penalty_never_rises_within_a_stage(method):
    X = table()[2]
    model = method(smoothing=1e-6).fit(X)
    for stage in np.unique(model.trace_["stage"]):
        objective = model.trace_["objective"][model.trace_["stage"] == stage]
        assert len(objective) >= 10
        assert (np.diff(objective) <= 0).all()


@both
@pytest.mark.parametrize("n_landmarks", ["auto", 40])
def test_observed_entries_are_unchanged_and_others_imputed_well(method, n_landmarks):
    truth, observed, X = table()
    filled = method(n_landmarks=n_landmarks, random_state=0).fit_transform(X)
    assert (filled[observed] == truth[observed]).all()
    assert missing_relative_error(filled, truth, observed) < 0.02


def test_a_conic_is_recovered_where_it_determines_the_entry():
    # An ellipse in 6 features; no row lacks more than 3: what is seen fixes a point on it.
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 80)
    truth = np.column_stack([np.cos(angle), np.sin(angle)]) @ rng.normal(size=(2, 6)) + 1
    observed = np.ones(truth.shape, bool)
    for row in observed[::2]:
        row[rng.choice(6, 3, replace=False)] = False
    filled = VMC(smoothing=1e-8).fit_transform(np.where(observed, truth, np.nan))
    assert missing_relative_error(filled, truth, observed) < 1e-3


def test_the_curve_tells_what_a_subspace_can_not():
    # One coordinate of a parabola: linear methods see full rank; y = x^2 settles y.
    x = np.linspace(-1, 1, 60)
    truth = np.column_stack([x, x**2])
    observed = np.ones(truth.shape, bool)
    observed[::4, 1] = False
    filled = VMC(smoothing=1e-8).fit_transform(np.where(observed, truth, np.nan))
    assert np.abs(filled - truth).max() < 1e-3


def test_as_many_landmarks_as_samples_are_exact_and_fewer_come_close():
    truth, _, X = table()
    exact = VMC(smoothing=1e-4, n_landmarks=len(X)).fit_transform(X)
    # By default, landmarks end where what they leave is far below the smoothing.
    default = VMC(smoothing=1e-4).fit_transform(X)
    np.testing.assert_allclose(default, exact, atol=1e-3 * np.abs(truth).max())
    # Monomials of degree 1 to 6 in two variables, and the constant: at most 28 dimensions.
    fewer = VMC(smoothing=1e-4, n_landmarks=40).fit_transform(X)
    np.testing.assert_allclose(fewer, exact, atol=0.02 * np.abs(truth).max())


@both
def test_a_new_row_is_completed_well_and_on_its_own(method):
    truth, observed, X = table(150)
    model = method(random_state=0).fit(X[:90])
    together = model.transform(X[90:])
    assert missing_relative_error(together, truth[90:], observed[90:]) < 0.03
    for i in (0, 7, 50):
        alone = model.transform(X[90 + i : 91 + i])[0]
        np.testing.assert_allclose(alone, together[i], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_held_out_entries_end_the_path_of_a_narrow_kernel_early_on_noisy_data():
    truth, observed, _ = table(200, degree=2)
    noisy = truth + 0.5 * np.random.default_rng(1).normal(size=truth.shape)
    X = np.where(observed, noisy, np.nan)
    selected = NLMC(1.0, random_state=0)
    error = missing_relative_error(selected.fit_transform(X), truth, observed)
    to_the_end = NLMC(1.0, smoothing=1e-8).fit_transform(X)
    assert selected.smoothing_ > 1e-6
    assert "Held-out entries were recovered best at stage" in selected.stop_reason_
    assert error < missing_relative_error(to_the_end, truth, observed)


def test_bandwidth_is_selected_by_what_it_recovers():
    truth, observed, X = table(150)
    model = NLMC(tol=1e-3, random_state=0)
    error = missing_relative_error(model.fit_transform(X), truth, observed)
    assert model.bandwidth_ > 0.5
    narrow = NLMC(0.5, smoothing=1e-8, tol=1e-3)
    filled = narrow.fit_transform(X)
    assert narrow.bandwidth_ == 0.5
    assert error < 0.5 * missing_relative_error(filled, truth, observed)


def test_the_offset_does_not_depend_on_units():
    X = table()[2]
    one = VMC(scale=False, smoothing=1e-3).fit(X)
    other = VMC(scale=False, smoothing=1e-3).fit(1000 * X)
    np.testing.assert_allclose(other.kernel_.offset, 1e6 * one.kernel_.offset)


@both
def test_a_complete_table_teaches_new_rows(method):
    truth, observed, X = table(150)
    model = method(random_state=0)
    assert (model.fit_transform(truth[:90]) == truth[:90]).all()
    filled = model.transform(X[90:])
    assert missing_relative_error(filled, truth[90:], observed[90:]) < 0.03


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (VMC(degree=0), "degree must be"),
        (VMC(offset=-1), "offset must be"),
        (VMC(power=0), "power must be"),
        (VMC(power=1.5), "power must be.*at most 1"),
        (VMC(smoothing="no"), "smoothing"),
        (VMC(n_landmarks=0), "n_landmarks"),
        (NLMC(bandwidth=-1), "bandwidth"),
        (NLMC(max_iter=0), "max_iter"),
        (NLMC(tol=-1), "tol"),
    ],
)
def test_wrong_parameters_say_what_to_give(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.eye(5))
