import numpy as np
import pytest

from hirank.online.prequential import (
    BLOCK,
    HISTORY,
    MAX_ERROR,
    MAX_ERRORS,
    MAX_LINES,
    RECENT,
    PrequentialScores,
)


def score(errors, batch=25):
    scores = PrequentialScores()
    for end in range(batch, len(errors) + 1, batch):
        scores = scores.add(errors[end - batch : end], end)
    return scores


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("kind", "share"), [("standard_normal", 1e-3), ("standard_exponential", 1e-2)]
)
def test_stationary_noise_is_hardly_ever_a_jump(kind, share):
    alarms = []
    for seed in range(100):
        errors = np.abs(getattr(np.random.default_rng(seed), kind)(1000))
        scores = PrequentialScores()
        for end in range(25, 1001, 25):
            scores = scores.add(errors[end - 25 : end], end)
            alarms.append(scores.jumped)
    assert np.mean(alarms) < share


def test_errors_that_grow_fourfold_are_a_jump():
    for seed in range(100):
        errors = np.abs(np.random.default_rng(seed).standard_normal(600))
        errors[-BLOCK:] *= 4
        assert score(errors).jumped, seed


def test_a_jump_is_reported_until_it_has_become_usual(rng):
    errors = np.abs(rng.standard_normal(4 * MAX_ERRORS))
    errors[400:] *= 4
    assert score(errors[:600]).jumped
    assert not score(errors).jumped


def test_a_few_large_errors_are_not_a_jump(rng):
    errors = np.abs(rng.standard_normal(600))
    errors[-BLOCK::4] = 1e6
    assert not score(errors).jumped


def test_too_few_errors_and_negligible_ones_are_not_a_jump(rng):
    errors = np.abs(rng.standard_normal(3 * BLOCK))
    errors[-BLOCK:] *= 100
    assert score(errors).jumped
    assert not score(errors[BLOCK:]).jumped
    assert not score(1e-6 * errors).jumped


def test_predictions_are_poor_if_they_are_as_far_off_as_means(rng):
    errors = np.abs(rng.standard_normal(200))
    assert score(errors).poor
    assert not score(0.2 * errors).poor
    assert not score(errors[:25]).poor  # chance


def test_recent_is_the_root_mean_square_of_the_last_errors(rng):
    errors = rng.random(700)
    assert score(errors).recent == pytest.approx(np.sqrt(np.mean(errors[-RECENT:] ** 2)))
    assert np.isnan(PrequentialScores().recent)


def test_a_batch_without_errors_changes_nothing():
    scores = PrequentialScores().add(np.ones(3), 10)
    assert scores.add(np.zeros(0), 20) is scores


def test_forgetting_removes_the_usual_level_and_keeps_the_history(rng):
    scores = score(rng.random(200))
    fresh = scores.forget()
    assert len(fresh.errors) == 0
    assert not fresh.jumped
    assert not fresh.poor
    assert fresh.recent == scores.history["error"][-1]
    np.testing.assert_array_equal(fresh.history, scores.history)


def test_memory_is_bounded_and_merged_lines_keep_the_mean_square(rng):
    scores, squares, entries = PrequentialScores(), 0.0, 0
    for i in range(3 * MAX_LINES):
        errors = rng.random(1 + i % 5)
        scores = scores.add(errors, 10 * (i + 1))
        squares, entries = squares + np.sum(errors**2), entries + len(errors)
        assert len(scores.history) <= MAX_LINES
        assert len(scores.errors) <= MAX_ERRORS
    history = scores.history
    assert len(history) > MAX_LINES // 2
    assert history["entries"].sum() == entries
    assert np.sum(history["entries"] * history["error"] ** 2) == pytest.approx(squares)
    assert (np.diff(history["samples"]) > 0).all()
    assert history["samples"][-1] == 30 * MAX_LINES


@pytest.mark.parametrize(
    ("n_lines", "line"),
    [(MAX_LINES + 1, (1, 0.5, 1)), (1, (1, 1e200, 1)), (1, (1, 0.5, 2**62)), (1, (1, 0.5, 0))],
)
def test_histories_that_could_not_be_continued_are_rejected(n_lines, line):
    with pytest.raises(ValueError, match=r"lines are kept|errors must be|must have 1 to"):
        PrequentialScores(np.ones(3), np.array([line] * n_lines, HISTORY)).check()


def test_the_largest_errors_pass_the_check():
    scores = PrequentialScores()
    for samples in range(2 * MAX_LINES):
        scores = scores.add(np.full(7, np.inf), samples)

    scores.check()
    assert scores.recent == pytest.approx(MAX_ERROR)
