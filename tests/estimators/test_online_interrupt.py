"""Calls that are interrupted, and processes that are killed."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import stream_process
from helpers.estimators import fast_online
from helpers.saved_state import differences, load

from hirank import OnlineImputer, OnlineKFMC

# An interrupt that strikes in a destructor can't be raised, only reported.
unraisable = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(params=[OnlineImputer, OnlineKFMC], ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture
def alarm():
    """Arms a timer that raises KeyboardInterrupt in the main thread."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("needs setitimer")

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted_after(seconds, alarm, call):
    try:
        try:
            alarm(seconds)
            call()
        finally:
            alarm(0)
    except KeyboardInterrupt:
        return True
    return False


def interrupted_at(number, call):
    """Whether the call was interrupted, on entry of the function of that number."""
    count = 0

    def profile(frame, event, _):
        nonlocal count
        if event == "call" and "hirank" in frame.f_code.co_filename:
            count += 1
            if count == number:
                raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def which_state(model, before, after):
    """Return whether the model is as before the call or as after it; it must be one of the two."""
    state = model.get_state()
    if not differences(state, before):
        return "before"
    assert not differences(state, after)
    return "after"


@unraisable
@pytest.mark.parametrize(
    ("method", "start"),
    [("partial_fit_transform", 0), ("partial_fit", 30), ("partial_fit_transform", 50)],
)
def test_an_interrupted_call_leaves_the_model_as_it_was(kind, stream, alarm, method, start):
    """From the first row, before there is a model, and with one."""
    model = fast_online(kind)
    if start:
        model.partial_fit(stream.X[:start])
    before, rows = model.get_state(), stream.X[start : start + 45]
    rest = stream.X[start + 45 : start + 75]
    getattr(kind.from_state(before), method)(rows)  # compiles what there is to compile
    began = time.perf_counter()
    getattr(model, method)(rows)
    seconds = time.perf_counter() - began
    after = model.get_state()
    filled, end = model.partial_fit_transform(rest), model.get_state()
    chance, found = random.Random(start), set()
    for attempt in range(40):  # a call may take less time than the one that was measured
        if attempt >= 4 and "before" in found:
            break
        model = kind.from_state(before)
        call = getattr(model, method)
        wait = chance.uniform(1e-5, 0.8 * seconds / (1 + attempt // 4))
        if interrupted_after(wait, alarm, lambda: call(rows)):  # noqa: B023
            found.add(which_state(model, before, after))
    assert "before" in found
    again = kind.from_state(before)
    for m in (model, again):
        if which_state(m, before, after) == "before":
            m.partial_fit(rows)
        assert (m.partial_fit_transform(rest) == filled).all()
        assert not differences(m.get_state(), end)


@unraisable
@pytest.mark.parametrize("method", ["partial_fit", "fit"])
def test_a_call_may_be_interrupted_anywhere(kind, stream, method):
    """It is interrupted at functions from the first to the last one that it enters."""
    rows = stream.X[70:100] if method == "partial_fit" else stream.X[:45, :5]
    before = fast_online(kind).partial_fit(stream.X[:70]).get_state()
    getattr(kind.from_state(before), method)(rows)  # what is computed once is computed now
    done = kind.from_state(before)
    calls = []
    sys.setprofile(
        lambda frame, event, _: (
            calls.append(1) if event == "call" and "hirank" in frame.f_code.co_filename else None
        )
    )
    getattr(done, method)(rows)
    sys.setprofile(None)
    after, last = done.get_state(), len(calls)
    chance = random.Random(0)
    for number in {1, 2, 3, *chance.sample(range(1, last), 4), *range(last - 3, last + 1)}:
        model = kind.from_state(before)
        assert interrupted_at(number, lambda: getattr(model, method)(rows)), number  # noqa: B023
        columns = {"before": 8, "after": rows.shape[1]}[which_state(model, before, after)]
        assert model.n_features_in_ == columns
        assert np.isfinite(model.transform(stream.X[:2, :columns])).all()


@pytest.mark.slow
def test_a_killed_process_continues_from_its_last_state(kind, tmp_path):
    path, chance = tmp_path / "state.npz", random.Random(kind.__name__)
    folder = str(Path(stream_process.__file__).parents[1])
    saved = 0
    for _ in range(2):
        command = [sys.executable, "-m", "helpers.stream_process", str(path), kind.__name__]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
            first = int(process.stdout.readline())
            time.sleep(chance.uniform(0, 0.4))
            process.kill()
            lines = [first, *map(int, process.stdout.read().split())]
        assert process.returncode == -signal.SIGKILL
        assert lines[0] == saved + stream_process.SAVE_EVERY
        state = load(path)
        saved = state["record"]["samples"]
        assert saved >= lines[-1]
    resumed, never_killed = kind.from_state(state), stream_process.make_model(kind.__name__)
    count = resumed.n_samples_seen_
    for number in range(count):
        never_killed.partial_fit(stream_process.row(number))
    assert not differences(never_killed.get_state(), state)
    for number in range(count, count + 40):
        row = stream_process.row(number)
        one, two = resumed.partial_fit_transform(row), never_killed.partial_fit_transform(row)
        assert (one == two).all()
    assert not differences(resumed.get_state(), never_killed.get_state())
