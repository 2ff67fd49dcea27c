import numpy as np
import pytest

from hirank.online.prequential import BLOCK, KEPT, LINES, RECENT, Scores


def scores_of(errors, batch=25):
    scores = Scores()
    for end in range(batch, len(errors) + 1, batch):
        scores = scores.add(errors[end - batch : end], end)
    return scores


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("kind", "most"), [("standard_normal", 1e-3), ("standard_exponential", 1e-2)]
)
def test_noise_that_stays_the_same_is_hardly_ever_a_jump(kind, most):
    alarms = []
    for seed in range(100):
        errors = np.abs(getattr(np.random.default_rng(seed), kind)(1000))
        scores = Scores()
        for end in range(25, 1001, 25):
            scores = scores.add(errors[end - 25 : end], end)
            alarms.append(scores.jumped)
    assert np.mean(alarms) < most


def test_errors_that_grow_fourfold_are_a_jump():
    for seed in range(100):
        errors = np.abs(np.random.default_rng(seed).standard_normal(600))
        errors[-BLOCK:] *= 4
        assert scores_of(errors).jumped, seed


def test_a_jump_shows_until_it_has_become_usual(rng):
    errors = np.abs(rng.standard_normal(4 * KEPT))
    errors[400:] *= 4
    assert scores_of(errors[:600]).jumped
    assert not scores_of(errors).jumped


def test_a_few_rows_that_go_wrong_are_no_jump(rng):
    errors = np.abs(rng.standard_normal(600))
    errors[-BLOCK::4] = 1e6
    assert not scores_of(errors).jumped


def test_too_few_errors_and_negligible_ones_are_no_jump(rng):
    errors = np.abs(rng.standard_normal(3 * BLOCK))
    errors[-BLOCK:] *= 100
    assert scores_of(errors).jumped
    assert not scores_of(errors[BLOCK:]).jumped
    assert not scores_of(1e-6 * errors).jumped


def test_fills_are_poor_when_as_far_off_as_means(rng):
    errors = np.abs(rng.standard_normal(200))
    assert scores_of(errors).poor
    assert not scores_of(0.2 * errors).poor
    assert not scores_of(errors[:25]).poor  # chance


def test_recent_is_the_root_mean_square_of_the_last_errors(rng):
    errors = rng.random(700)
    assert scores_of(errors).recent == pytest.approx(np.sqrt(np.mean(errors[-RECENT:] ** 2)))
    assert np.isnan(Scores().recent)


def test_a_batch_without_errors_changes_nothing():
    scores = Scores().add(np.ones(3), 10)
    assert scores.add(np.zeros(0), 20) is scores


def test_forgetting_clears_the_usual_level_and_keeps_the_history(rng):
    scores = scores_of(rng.random(200))
    fresh = scores.forget()
    assert len(fresh.errors) == 0
    assert not fresh.jumped
    assert not fresh.poor
    assert fresh.recent == scores.history["error"][-1]
    np.testing.assert_array_equal(fresh.history, scores.history)


def test_memory_is_bounded_and_merged_lines_keep_the_mean_square(rng):
    scores, squares, entries = Scores(), 0.0, 0
    for i in range(3 * LINES):
        errors = rng.random(1 + i % 5)
        scores = scores.add(errors, 10 * (i + 1))
        squares, entries = squares + np.sum(errors**2), entries + len(errors)
        assert len(scores.history) <= LINES
        assert len(scores.errors) <= KEPT
    history = scores.history
    assert len(history) > LINES // 2
    assert history["entries"].sum() == entries
    assert np.sum(history["entries"] * history["error"] ** 2) == pytest.approx(squares)
    assert (np.diff(history["samples"]) > 0).all()
    assert history["samples"][-1] == 30 * LINES
