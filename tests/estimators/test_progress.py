import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.estimators import fast_imputer, fast_kfmc
from hypothesis import given
from hypothesis import strategies as st

from hirank.estimators import progress
from hirank.estimators.callbacks import subscribed
from hirank.estimators.progress import SHARES, Activity, TimeLeft, describe_left, open_line
from hirank.optim.trace import Phase, PhaseStarted, TrialFinished

PHASES = {phase.name: phase for phase in Phase}


def event(key: str, seconds: float, error: float = 0.5):
    if key in PHASES:
        return PhaseStarted(PHASES[key], seconds)
    return TrialFinished(key, key, error, seconds)


def test_the_estimate_is_what_usually_remains_after_an_event():
    left = TimeLeft()
    assert left.at(3.0) == math.inf

    left.update(event("dictionary", 9.0))

    assert left.at(9.0) == pytest.approx(9.0 * (1 - SHARES["dictionary"]) / SHARES["dictionary"])


@given(
    st.lists(
        st.tuples(st.sampled_from([*SHARES, "another family"]), st.floats(0, 1e4)), max_size=12
    ),
    st.none() | st.floats(0.1, 1e4),
)
def test_the_time_left_only_falls_and_the_share_done_only_grows(events, max_time):
    left, last, done = TimeLeft(max_time), math.inf, 0.0
    for key, seconds in sorted(events, key=lambda one: one[1]):
        for moment in (seconds, None):
            if moment is None:
                left.update(event(key, seconds))
            assert 0 <= left.at(seconds) <= last
            assert done - 1e-12 <= left.share(seconds) <= 1
            last, done = left.at(seconds), left.share(seconds)


def test_the_time_left_respects_the_time_limit():
    left = TimeLeft(max_time=10.0)
    left.update(event("low rank", 2.0))

    assert left.at(2.0) == 8.0
    assert left.at(12.0) == 0.0


@pytest.mark.parametrize("key", ["low rank", "another family"])
def test_an_event_never_raises_the_estimate(key):
    left = TimeLeft()
    left.update(event("dictionary", 5.0))
    before = left.at(6.0)

    left.update(event(key, 6.0))

    assert left.at(6.0) == before


def test_estimates_are_rounded_to_what_is_known():
    texts = [describe_left(x) for x in (math.inf, 0.2, 7.6, 48.0, 90.0, 3000.0)]

    assert texts == [
        "estimating the time",
        "about a second left",
        "about 7 s left",
        "about 45 s left",
        "about 1 min left",
        "about 50 min left",
    ]


def test_the_activity_is_the_last_event_and_the_lowest_error():
    activity = Activity("reading")
    assert str(activity) == "reading"

    activity.update(event("dictionary", 1.0, error=0.2))
    activity.update(event("Gaussian", 2.0, error=0.7))
    assert str(activity) == "Gaussian, lowest error 0.200"

    activity.update(event("REFIT", 3.0))
    assert str(activity) == f"{Phase.REFIT.value}, lowest error 0.200"


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 0)
    monkeypatch.setattr(progress, "_is_terminal", lambda: True)


@pytest.mark.parametrize("make", [fast_imputer, fast_kfmc])
def test_a_terminal_shows_one_line_that_is_removed_at_the_end(curved, terminal, capsys, make):
    make(verbose=1, max_iter=3).fit(curved.X)

    text = capsys.readouterr().err
    assert "\n" not in text
    assert text.count("\r\x1b[K") > 3
    assert text.endswith("\r\x1b[K")
    assert f"{make().__class__.__name__}: " in text


def test_the_line_of_a_search_shows_what_is_done_and_the_time_left(curved, terminal, capsys):
    fast_imputer(verbose=1).fit(curved.X)

    text = capsys.readouterr().err
    assert re.search(r"\] \d+ %, about .+ left \(", text)
    assert "lowest error 0." in text


@pytest.mark.parametrize("verbose", [0, 2])
def test_other_verbosities_show_no_line(curved, terminal, capsys, verbose):
    fast_imputer(verbose=verbose).fit(curved.X)

    text = capsys.readouterr().err
    assert "\r" not in text
    assert bool(text) == bool(verbose)


def test_a_file_gets_lines(curved, capsys):
    fast_imputer(verbose=1).fit(curved.X)

    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[FastImputer] one Gaussian: error ")
    assert len(lines) > 3


def test_a_line_is_removed_after_an_error(curved, terminal, capsys, monkeypatch):
    monkeypatch.setattr("hirank.estimators.imputer.search", lambda *args, **given: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        fast_imputer(verbose=1).fit(curved.X)

    assert capsys.readouterr().err == "\r\x1b[K"


def test_a_notebook_replaces_one_output(curved, monkeypatch):
    shown = []

    class Handle:
        def update(self, content, raw):
            assert raw
            shown.append(content["text/plain"])

    def display(content, raw, display_id):
        assert raw
        assert display_id is True
        return Handle()

    shell = SimpleNamespace(kernel=object())
    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))

    fast_imputer(verbose=1).fit(curved.X)

    assert len(shown) > 3
    assert shown[-1] == ""


def test_no_line_is_opened_without_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)

    assert open_line() is None


def test_the_families_that_estimates_are_made_of_exist(curved):
    events = []
    with subscribed(events.append):
        fast_imputer().fit(curved.X)

    keys = {one.phase.name if isinstance(one, PhaseStarted) else one.family for one in events}
    assert keys & set(SHARES) >= {"low-rank kernel (rbf)", "dictionary", "REFIT"}


def test_subscribers_get_the_events_that_a_line_shows(curved, terminal):
    events = []
    with subscribed(events.append):
        fast_imputer(verbose=1).fit(curved.X)

    assert {type(one) for one in events} == {TrialFinished, PhaseStarted}
    assert all(np.isfinite(one.seconds) for one in events)
