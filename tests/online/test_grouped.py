import numpy as np
import pytest
from helpers.estimators import fast_online

from hirank import OnlineImputer
from hirank.exceptions import ModelFileError
from hirank.online.clock import TimeCounts
from hirank.online.grouped import GroupedStream
from hirank.persistence.record import decode, encode


@pytest.fixture(scope="module")
def learned():
    """A stream of 160 rows of two groups with times, of which some are repeated, and its config."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(160, 3)), axis=0)
    X[rng.random(X.shape) < 0.3] = np.nan
    table = np.column_stack([np.arange(160) // 4, np.arange(160) % 2, X])
    model = fast_online(OnlineImputer, time=0, groups=1)
    with pytest.warns(UserWarning, match="same time"):
        model.partial_fit(table)
    return model._stream, model._config()


def test_filters_are_those_of_groups_and_of_no_row_between_calls(learned):
    stream, _ = learned
    assert stream.arrivals.ordered is None
    assert [*stream.groups] == ["0", "1"]
    assert [one.moments.rows for one in stream.groups.values()] == [80, 80]


def test_a_group_is_completed_as_by_its_own_filters(learned):
    stream, config = learned
    rows = np.array([[np.nan, 1.0, 2.0]] * 2)
    both = stream.complete(rows, config, times=np.full(2, 41.0), labels=["0", "1"])
    alone = [
        stream.complete(rows[:1], config, times=np.array([41.0]), labels=[label])
        for label in ("0", "1")
    ]
    np.testing.assert_array_equal(both, np.vstack(alone))
    assert both[0, 0] != both[1, 0]


def test_times_that_could_not_be_used_are_counted_over_all_groups(learned):
    stream, _ = learned
    assert stream.time_counts == TimeCounts(repeated=80)


def test_units_before_there_is_a_model_are_those_of_the_rows_of_all_groups():
    rows = np.array([[0.0, np.nan, 1.0], [2.0, 3.0, 1.0], [4.0, np.nan, 1.0]])
    model = fast_online(OnlineImputer, time="auto", groups=0)
    model.partial_fit(np.column_stack([[0, 1, 0], rows]))
    unit = model._stream.unit()
    np.testing.assert_allclose(unit, [np.sqrt(8 / 3), np.nan, np.nan])


def test_a_state_whose_groups_have_other_features_is_an_error(learned):
    stream, config = learned
    wider = stream.groups["0"].add_features(1, config.arrival.ordered)
    state = encode(stream)
    state["groups"] = encode({"0": wider, "1": stream.groups["1"]})
    with pytest.raises(ValueError, match="group '0' must have 3 features"):
        decode(GroupedStream, state)


def test_a_file_whose_groups_are_not_those_of_its_parameters_is_an_error(learned, tmp_path):
    model = fast_online(OnlineImputer, time="auto").partial_fit(np.ones((3, 3)))
    model.__dict__["_record"] = learned[0]
    with pytest.raises((ValueError, ModelFileError), match="groups"):
        model.save(tmp_path / "m.hirank")


def test_the_state_does_not_grow_with_the_rows(learned):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(400) % 4, rng.normal(size=(400, 3))])
    model = fast_online(OnlineImputer, time="auto", groups=0, n_components=10)
    sizes = []
    for part in np.split(X, 4):
        model.partial_fit(part)
        sizes.append(_numbers(encode(model._stream)))
    # 620: the errors of the last entries, of which at most 1200 are kept. 200 rows would be 1800.
    assert sizes[3] - sizes[1] < 1000


def _numbers(state):
    """Return how many numbers there are in the arrays of a state."""
    if isinstance(state, dict):
        return sum(map(_numbers, state.values()))
    if isinstance(state, list):
        return sum(map(_numbers, state))
    return state.size if isinstance(state, np.ndarray) else 0
