import numpy as np
import pytest

from hirank.selection.significance import beats_constants, gain


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_gain_of_unrelated_losses_is_a_standard_normal_variable(rng):
    gains = [gain(*rng.exponential(size=(2, 300)), np.arange(300)) for _ in range(500)]

    # Means and deviations of 500 standard normal variables: 0 +- .045 and 1 +- .032.
    assert abs(np.mean(gains)) < 0.15
    assert abs(np.std(gains) - 1) < 0.1


def test_entries_of_a_row_count_as_one(rng):
    by_row = rng.exponential(size=(2, 100))

    single = gain(*by_row, np.arange(100))
    repeated = gain(*np.repeat(by_row, 7, axis=1), np.repeat(np.arange(100), 7))

    assert repeated == pytest.approx(single)


def test_equal_losses_have_no_gain():
    assert gain(np.ones(5), np.ones(5), np.arange(5)) == 0


def test_values_between_mean_and_median_do_not_beat_constants(rng):
    truth = rng.poisson(0.2, 400).astype(float)

    assert not beats_constants(
        np.full(400, 0.1), truth, np.full(400, 0.2), np.zeros(400), np.arange(400)
    )


@pytest.mark.parametrize("tail", [0.0, 1e3])
def test_values_close_to_the_truth_beat_constants_whatever_the_tail(tail, rng):
    truth = rng.normal(size=400)
    truth[0] = tail
    imputed = truth + rng.normal(scale=0.5, size=400)
    imputed[0] = 0.0

    assert beats_constants(imputed, truth, np.zeros(400), np.zeros(400), np.arange(400))
