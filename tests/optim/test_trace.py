from hirank.exceptions import StopReason
from hirank.optim.trace import SEARCH_SHARE, Monitor


class Clock(Monitor):
    """A monitor whose time is given."""

    seconds = 0.0


def test_a_search_that_ends_early_so_that_time_is_left_to_refit_is_ended_by_the_time_limit():
    monitor = Clock(max_time=10.0)
    monitor.seconds = SEARCH_SHARE * 10 + 0.1
    assert monitor.late
    assert not monitor.stopped

    run = monitor.finish_search("Selected on 20 held-out entries: one Gaussian.")

    assert run.reason is StopReason.MAX_TIME
    assert run.stop_reason.startswith("Ended by max_time=10 seconds")


def test_a_search_that_never_left_anything_out_has_converged():
    monitor = Clock(max_time=10.0)
    monitor.seconds = SEARCH_SHARE * 10 - 0.1
    assert not monitor.late

    run = monitor.finish_search("Selected on 20 held-out entries: one Gaussian.")

    assert run.reason is StopReason.CONVERGED
