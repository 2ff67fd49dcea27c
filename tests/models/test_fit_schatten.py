"""The path of a low-rank kernel matrix, its landmarks, and the model for new rows."""

import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.core.init import soft_impute
from hirank.core.threads import Workers
from hirank.exceptions import StopReason
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error
from hirank.models.fit_schatten import (
    EXACT_SMOOTHINGS,
    FIRST_SMOOTHING,
    LAST_SMOOTHING,
    MAX_LANDMARKS,
    MIN_LANDMARKS,
    N_NARROW,
    SchattenFitter,
    SchattenPath,
)
from hirank.optim.path import BANDWIDTHS, Setting, default_path
from hirank.optim.trace import Monitor

KERNEL = Poly(2, 1.0)
SETTING = Setting(KERNEL, beta=LAST_SMOOTHING)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def parabola(rng):
    """Points of a parabola in a plane of five dimensions, 90 x 5, and the observed entries."""
    t = rng.uniform(-1, 1, 90)
    X = np.column_stack([t, t**2]) @ rng.normal(size=(2, 5))
    # Three entries of a row determine the others.
    observed = rng.permuted(np.tile([True, True, True, True, False], (90, 1)), axis=1)
    observed[::3] = rng.permuted(np.tile([True, True, True, False, False], (30, 1)), axis=1)
    return X / X.std(axis=0), observed


def fit(path, X, observed, *, bounds=None, last=None):
    """Return the ends of all stages up to the last one."""
    fitter = SchattenFitter(observed, Monitor(), Workers(1), bounds)
    filled = soft_impute(np.where(observed, X, 0), observed)
    ends = []
    for number in range(len(path.stages) if last is None else last + 1):
        ends.append(fitter.fit_stage(path, number, filled))
        filled = fitter.restart(number, ends[-1])
    return ends


def test_the_smoothing_falls_by_a_decade_per_stage():
    stages = SchattenPath(KERNEL, bandwidth=3.0).stages

    gammas = [stage.beta for stage in stages]
    assert gammas[0] == pytest.approx(FIRST_SMOOTHING)
    assert gammas[-1] == pytest.approx(LAST_SMOOTHING)
    np.testing.assert_allclose(np.diff(np.log10(gammas)), -1)
    assert {stage.bandwidth for stage in stages} == {3.0}


@pytest.mark.parametrize("smoothing", [0.5, FIRST_SMOOTHING])
def test_a_smoothing_not_below_the_first_is_a_path_of_one_stage(smoothing):
    stages = SchattenPath(KERNEL, smoothing=smoothing).stages

    assert [stage.beta for stage in stages] == pytest.approx([smoothing])


def test_a_path_ends_at_its_smoothing():
    gammas = [stage.beta for stage in SchattenPath(KERNEL, smoothing=3e-4).stages]

    assert gammas[-1] == pytest.approx(3e-4)
    assert gammas[0] == pytest.approx(FIRST_SMOOTHING)
    assert len(gammas) == 4


def test_all_rows_of_a_small_table_are_landmarks(rng):
    X = rng.normal(size=(MIN_LANDMARKS, 20))

    assert SchattenPath(KERNEL).landmarks(X, SETTING) is None
    assert SchattenPath(KERNEL, n_landmarks=150).landmarks(X, SETTING) is None
    assert len(SchattenPath(KERNEL, n_landmarks=7).landmarks(X, SETTING)) == 7


def test_the_number_of_landmarks_grows_more_slowly_than_the_rows(rng):
    X, path = rng.normal(size=(3000, 30)), SchattenPath(KERNEL)

    numbers = [len(path.landmarks(X[:n], SETTING)) for n in (MIN_LANDMARKS + 1, 800, 3000)]

    assert numbers[0] == MIN_LANDMARKS
    assert MIN_LANDMARKS < numbers[1] < numbers[2] == MAX_LANDMARKS


def test_landmarks_end_where_images_are_closer_to_their_span_than_the_smoothing(rng):
    noise = 1e-3 * rng.normal(size=(300, 8))
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + noise
    few, many = (SchattenPath(KERNEL).landmarks(X, SETTING, enough) for enough in (1e-2, 1e-8))

    assert len(few) == 6  # the monomials of degree 2 at most in two variables
    assert len(many) == 6 + 6 * 3  # and their products with six directions of noise
    left = KERNEL.diag(X) - (
        KERNEL.matrix(X, X[few])
        * np.linalg.solve(KERNEL.matrix(X[few], X[few]), KERNEL.matrix(X[few], X)).T
    ).sum(axis=1)
    assert left.max() <= 1e-2


@pytest.fixture
def nearly_a_plane(rng):
    """Points of a plane of eight dimensions with little noise, 300 x 8, and what is observed."""
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 1e-5 * rng.normal(size=(300, 8))
    return X, rng.random(X.shape) >= 0.1


def last_stage(path, X, observed):
    fitter = SchattenFitter(observed, Monitor(), Workers(1))
    return fitter.fit_stage(path, len(path.stages) - 1, X)


def test_new_rows_have_more_landmarks_than_the_stage_that_was_fitted(nearly_a_plane):
    path = SchattenPath(KERNEL)
    end = last_stage(path, *nearly_a_plane)

    model = path.model(end, len(path.stages) - 1)

    assert 6 <= len(end.D) < len(model.D)
    assert (model.D[:, None] == end.X).all(axis=2).any(axis=1).all()


def test_a_given_number_of_landmarks_is_not_lowered_by_the_smoothing(nearly_a_plane):
    numbers = [
        len(last_stage(SchattenPath(KERNEL, n_landmarks=n), *nearly_a_plane).D) for n in (None, 12)
    ]

    assert numbers[0] < 12 == numbers[1]


def test_landmarks_of_early_stages_end_far_below_the_smoothing(nearly_a_plane, rng):
    X, observed = nearly_a_plane
    path = SchattenPath(KERNEL)

    (end,) = fit(path, X + 0.1 * rng.normal(size=X.shape), observed, last=0)

    within = path.landmarks(end.X, end.setting, end.setting.beta)
    assert len(within) < len(end.D) < MIN_LANDMARKS


def test_a_table_whose_images_need_most_rows_has_no_landmarks(rng):
    X = rng.normal(size=(50, 20))

    assert SchattenPath(KERNEL).landmarks(X, SETTING, 1e-8) is None


def test_a_model_has_a_setting_for_each_stage_up_to_the_one_fitted(parabola):
    X, observed = parabola
    path = SchattenPath(RBF(), bandwidth=2.0, n_landmarks=12)
    ends = fit(path, X, observed, last=4)

    for number, end in enumerate(ends):
        model = path.model(end, number)

        assert len(model.settings) == number + 1
        assert len(model.D) == len(end.D) == 12
        # In units of k(d, d), which is 1, ridges are those of the stages; the first are narrow.
        n_narrow = min(N_NARROW, number)
        stages = [*default_path()[:n_narrow], *path.stages[n_narrow : number + 1]]
        np.testing.assert_allclose(
            [setting.beta for setting in model.settings], [stage.beta for stage in stages]
        )
        assert model.settings[-1].kernel == end.setting.kernel
        model.check()


def test_new_rows_of_a_polynomial_kernel_go_through_narrow_rbf_kernels_first(parabola):
    X, observed = parabola
    path = SchattenPath(KERNEL, n_landmarks=12)

    model = path.model(fit(path, X, observed, last=4)[-1], 4)

    kernels = [setting.kernel for setting in model.settings]
    assert [type(kernel) for kernel in kernels] == [RBF] * N_NARROW + [Poly] * (5 - N_NARROW)
    widths = np.array([kernel.sigma for kernel in kernels[:N_NARROW]])
    np.testing.assert_allclose(widths / widths[0], BANDWIDTHS[:N_NARROW])


def test_landmarks_without_imputed_entries_are_smoothed_less_at_the_end_of_the_path(parabola):
    X, observed = parabola
    path = SchattenPath(RBF(), n_landmarks=12, smoothing=1e-2)
    first, last = fit(path, X, observed)

    inexact, exact = (path.model(last, 1, exact=one) for one in (False, True))

    assert exact.settings[:2] == inexact.settings
    betas = [setting.beta for setting in exact.settings[1:]]
    np.testing.assert_allclose(betas, [1e-2, *EXACT_SMOOTHINGS])
    assert {setting.kernel for setting in exact.settings[1:]} == {last.setting.kernel}
    assert len(path.model(first, 0, exact=True).settings) == 1  # not on the way
    exact.check()


# The errors are below 2e-7; soft-impute, from which the fits start, has 0.12.
@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_an_exact_table_and_new_rows_of_it_are_recovered(n_landmarks, parabola):
    X, observed = parabola
    path = SchattenPath(KERNEL, power=0.2, n_landmarks=n_landmarks)

    end = fit(path, X[:60], observed[:60])[-1]
    new = path.model(end, len(path.stages) - 1).complete(
        np.where(observed, X, 0)[60:], observed[60:]
    )

    assert missing_relative_error(end.X, X[:60], observed[:60]) < 1e-4
    assert missing_relative_error(new, X[60:], observed[60:]) < 1e-4
    assert (X[:60] == end.X)[observed[:60]].all()
    assert (new == X[60:])[observed[60:]].all()
    assert len(end.D) <= (n_landmarks or 60)
    assert (end.D[:, None] == end.X).all(axis=2).any(axis=1).all()  # landmarks are rows


def test_imputed_values_stay_within_the_bounds_in_all_stages_and_in_the_model(parabola):
    X, observed = parabola
    bounds = Bounds(np.full(5, -0.4), np.full(5, np.inf))
    path = SchattenPath(KERNEL, n_landmarks=20, smoothing=1e-4)
    fitter = SchattenFitter(observed, Monitor(), Workers(1), bounds)
    filled = bounds.clip(soft_impute(np.where(observed, X, 0), observed), observed)

    for number in range(len(path.stages)):
        end = fitter.fit_stage(path, number, filled)
        filled = fitter.restart(number, end)
        for table in (end.X, filled):
            assert table[~observed].min() >= -0.4
    assert (end.X[~observed] == -0.4).any()
    again = path.model(end, number, bounds).complete(np.where(observed, X, 0), observed)
    assert again[~observed].min() >= -0.4


def test_a_complete_table_is_returned_with_its_penalty(parabola):
    X, _ = parabola
    monitor = Monitor()
    fitter = SchattenFitter(np.ones(X.shape, bool), monitor, Workers(1))

    end = fitter.fit_stage(SchattenPath(KERNEL), 0, X)

    assert end.reason is StopReason.NOTHING_TO_FIT
    assert (end.X == X).all()
    assert monitor.steps == 1
    assert monitor.trace["objective"][0] > 0


def test_a_stage_may_have_more_landmarks_than_the_rule_and_takes_what_it_needs(rng):
    many, few = rng.normal(size=(300, 30)), rng.normal(size=(300, 2)) @ rng.normal(size=(2, 30))
    twice = SchattenPath(KERNEL, landmark_factor=2)

    assert len(SchattenPath(KERNEL).landmarks(many, SETTING, LAST_SMOOTHING)) == MIN_LANDMARKS
    assert twice.landmarks(many, SETTING, LAST_SMOOTHING) is None  # all rows
    assert len(twice.landmarks(few, SETTING, LAST_SMOOTHING)) <= 6  # polynomials of two variables
