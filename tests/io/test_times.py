"""Times of rows."""

import numpy as np
import pytest

from hirank.exceptions import InputError
from hirank.io.times import parse_times


def test_times_may_be_numbers_in_a_column_of_text():
    assert parse_times(["1000", "1002.5"], "id").tolist() == [1000, 1002.5]
    assert np.diff(parse_times(["2024-01-01", "2024-01-02"], "day")).tolist() == [86400]


def test_the_order_of_rows_decides_whether_days_or_months_come_first():
    days = parse_times(["05/01/2024", "06/01/2024", "04/02/2024"], "day")
    assert np.diff(days).tolist() == [86400, 29 * 86400]
    with pytest.raises(InputError, match="the day or the month may come first"):
        parse_times(["02/01/2024", "01/02/2024", "01/01/2024"], "day")


def test_what_is_not_a_time_is_reported_with_its_row():
    with pytest.raises(InputError, match="'soon' in row 2 is neither a number nor a date"):
        parse_times(["2024-01-01", "soon"], "day")
