import numpy as np

from hirank.online.buffer import column_means


def test_the_mean_of_equal_values_is_that_value_to_the_bit():
    values = np.random.default_rng(0).normal(size=50)

    means = column_means(np.tile(values, (7, 1)))

    np.testing.assert_array_equal(means, values)


def test_means_are_those_of_known_values_and_nan_without_any():
    rows = np.array([[1.0, np.nan, np.nan], [2.0, 4.0, np.nan]])

    np.testing.assert_array_equal(column_means(rows), [1.5, 4.0, np.nan])
    assert np.isnan(column_means(rows[:0])).all()
