"""Fits of the window that are cut into slices, one for each row."""

import pickle
import threading
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from helpers.estimators import WINDOW

from hirank import OnlineImputer
from hirank.online.updates import Update
from hirank.online.window import StreamState
from hirank.persistence.record import decode, encode

SLICE = 2e5  # multiplications: the fits below have 20 to 60 slices


class Sliced(OnlineImputer):
    """A stream with small slices."""

    def _config(self):
        return replace(super()._config(), slice_work=SLICE)


def make(kind=Sliced, **params):
    return kind(**{**WINDOW, "time": "auto", **params})


def one_by_one(model, rows):
    """Return imputed rows, and after which of them a fit went on."""
    filled, goes_on = [], []
    for row in rows:
        filled.append(model.partial_fit_transform(row[None]))
        goes_on.append(model._stream.learning is not None)
    return np.concatenate(filled), np.array(goes_on)


def test_a_fit_takes_as_many_rows_as_it_has_slices(stream):
    model = make().partial_fit(stream.X[:39])

    _, goes_on = one_by_one(model, stream.X[39:80])

    taken = int(np.argmin(goes_on))
    assert goes_on[0]
    assert 5 < taken < 41
    assert model.last_update_ is not Update.NONE


def test_rows_that_arrive_during_a_fit_are_learned_from_afterwards(stream):
    model = make()
    one_by_one(model, stream.X)
    while model._stream.learning is not None:
        model.partial_fit(stream.X[:1])

    learned = model.n_samples_seen_ - len(model._stream.pending)
    assert learned == 40 + 20 * (model.n_iter_ - 1)
    assert len(model._stream.pending) < 20


def test_results_do_not_depend_on_how_rows_are_split_into_calls(stream):
    whole, single = make(), make()

    by_batch = np.concatenate([whole.partial_fit_transform(X) for X in np.split(stream.X, 6)])
    by_row, _ = one_by_one(single, stream.X)

    late = slice(100, None)  # batches before the end of the first fit were imputed after it
    assert by_batch[late].tobytes() == by_row[late].tobytes()
    assert whole.dictionary_.tobytes() == single.dictionary_.tobytes()


def test_rows_in_no_order_that_come_with_the_first_fit_are_imputed_by_its_model(stream):
    X = stream.X[:60]

    filled = make().partial_fit_transform(X)
    by_model = make(OnlineImputer, time=None).partial_fit_transform(X[:40])

    np.testing.assert_array_equal(filled[:40], by_model)


def test_a_row_alone_does_not_wait_for_the_first_fit(stream):
    model = make().partial_fit(stream.X[:39])

    model.partial_fit_transform(stream.X[39:40])

    assert model._stream.learning.computation(None, 0).taken == 1


@pytest.mark.parametrize("through", [deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_in_the_middle_of_a_fit_continues_with_the_same_bits(stream, through):
    model = make().partial_fit(stream.X[:45])
    assert model._stream.learning.slices == 6

    again = through(model)

    first, _ = one_by_one(again, stream.X[45:120])
    second, _ = one_by_one(model, stream.X[45:120])
    assert first.tobytes() == second.tobytes()


def test_a_stream_that_is_saved_in_the_middle_of_a_fit_continues_with_the_same_bits(stream):
    model = make().partial_fit(stream.X[:45])

    restored = decode(StreamState, encode(model._stream))

    config = model._config()
    state, found = model._stream, []
    for row in stream.X[45:120]:
        state, one = state.append(row[None], config, impute=True)
        restored, other = restored.append(row[None], config, impute=True)
        found.append(one.tobytes() == other.tobytes())
    assert all(found)
    assert state.learning == restored.learning


def test_a_row_that_is_repeated_after_an_interrupt_computes_the_same_slice(stream):
    model = make().partial_fit(stream.X[:45])
    before, config = model._stream, model._config()

    before.append(stream.X[45:46], config)  # its result was lost
    computed = before.learning.running.taken
    after, _ = before.append(stream.X[45:46], config)

    assert computed == 7
    assert after.learning.running is before.learning.running
    assert after.learning.slices == 7


def test_an_interrupted_slice_is_computed_again(stream, monkeypatch):
    model, same = (make().partial_fit(stream.X[:45]) for _ in range(2))
    running = model._stream.learning.running

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(running._turns.calling, "acquire", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(stream.X[45:46])

    first, _ = one_by_one(model, stream.X[45:120])
    second, _ = one_by_one(same, stream.X[45:120])
    assert first.tobytes() == second.tobytes()


def test_transform_of_rows_in_no_order_completes_the_first_fit(stream):
    sliced, whole = (
        make().partial_fit(stream.X[:40]),
        make(OnlineImputer).partial_fit(stream.X[:40]),
    )
    assert sliced._stream.model is None

    filled = sliced.transform(stream.X[40:])

    assert filled.tobytes() == whole.transform(stream.X[40:]).tobytes()
    assert sliced._stream.model is None  # nothing was learned


def test_a_stream_that_is_dropped_in_the_middle_of_a_fit_leaves_no_thread(stream):
    before = set(threading.enumerate())
    model = make().partial_fit(stream.X[:45])
    (thread,) = set(threading.enumerate()) - before

    del model

    thread.join(5)
    assert not thread.is_alive()


def test_fit_of_a_table_is_not_cut(stream):
    model = make().fit(stream.X)
    assert model._stream.learning is None


def test_features_may_be_added_in_the_middle_of_a_fit(stream):
    model = make().partial_fit(stream.X[:45])
    model.add_features(1)

    wide = np.column_stack([stream.X, np.arange(300.0)])
    filled, goes_on = one_by_one(model, wide[45:120])

    assert np.isfinite(filled).all()
    assert not goes_on.all()
