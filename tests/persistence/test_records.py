from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.saved_state import differences, flat, load, save
from hirank.persistence.checks import PARTS
from hirank.persistence.records import from_state, to_state

from hirank import OnlineKFMC
from hirank.kernels import RBF
from hirank.persistence import records as states

QUICK = {"window": 60, "n_start": 40, "batch_size": 20, "max_iter": 10, "random_state": 0}
STREAMS = {
    *("Fitted", "Memory", "Model", "PaperModel", "Algorithm2State", "Poly", "RBF", "SampleStream"),
    *("Scaling", "Scores", "Setting", "Stage", "WindowStream"),
}


@pytest.fixture(scope="module", params=["window", "paper"])
def state(request, stream):
    model = OnlineKFMC(mode=request.param, kernel=RBF(3.0), **QUICK)
    return model.partial_fit(stream.holes[:110]).get_state()


def records(part):
    if isinstance(part, dict):
        found = {part["record"]} if "record" in part else set()
        return found.union(*map(records, part.values()))
    return set().union(*map(records, part)) if isinstance(part, list) else set()


def test_every_kind_of_record_survives_a_round_trip(stream):
    seen = set()
    for mode in ("window", "paper"):
        for kernel in ("rbf", "poly"):
            model = OnlineKFMC(mode=mode, kernel=kernel, **QUICK).partial_fit(stream.holes[:70])
            state = model.get_state()["stream"]
            assert not differences(to_state(from_state(state)), state)
            seen |= records(state)
    # The others are parts of a KFMC: see test_saving.py.
    assert seen == STREAMS
    assert set(states._RECORDS) == {kind.__name__ for kind in PARTS}


def test_a_state_is_made_of_plain_parts(state):
    for path, leaf in flat(state).items():
        if isinstance(leaf, np.ndarray):
            assert not leaf.dtype.hasobject, path
        else:
            assert leaf is None or type(leaf) in (bool, int, float, str), path


def test_json_and_npz_are_enough_to_keep_a_state(state, stream, tmp_path):
    save(state, tmp_path / "state.npz")
    again = load(tmp_path / "state.npz")
    assert not differences(again, state)
    one, two = OnlineKFMC.from_state(state), OnlineKFMC.from_state(again)
    rows = stream.holes[110:150]
    assert (one.partial_fit_transform(rows) == two.partial_fit_transform(rows)).all()
    assert not differences(one.get_state(), two.get_state())


def test_a_state_and_a_model_share_no_memory(state):
    given = deepcopy(state)
    model = OnlineKFMC.from_state(given)
    for handed_out in (given, model.get_state()):
        for leaf in flat(handed_out).values():
            if isinstance(leaf, np.ndarray):
                leaf[...] = np.zeros((), leaf.dtype)
    assert not differences(model.get_state(), state)


def test_a_state_before_the_first_row():
    model = OnlineKFMC(7, window=50, missing_values=-1, random_state=3)
    again = OnlineKFMC.from_state(model.get_state())
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "n_features_in_")


def test_a_random_state_object_is_saved_as_the_seed_it_gave(stream):
    model = OnlineKFMC(**{**QUICK, "random_state": np.random.RandomState(5)})
    model.partial_fit(stream.holes[:50])
    again = OnlineKFMC.from_state(model.get_state())
    for m in (model, again):
        m.partial_fit(stream.holes[50:100])
    assert (again.dictionary_ == model.dictionary_).all()


def test_another_format_is_refused(state):
    with pytest.raises(ValueError, match=r"format 99.*knows format 1"):
        OnlineKFMC.from_state({**state, "format": 99})
    with pytest.raises(ValueError, match="format None"):
        OnlineKFMC.from_state({})


@pytest.mark.parametrize("part", ["params", "feature_names", "stream"])
def test_a_state_that_lacks_a_part_is_refused(state, part):
    with pytest.raises(ValueError, match=rf"damaged.*{part}"):
        OnlineKFMC.from_state({k: v for k, v in state.items() if k != part})


def test_unknown_parameters_records_and_fields_are_refused(state):
    with pytest.raises(ValueError, match=r"parameters.*'speed'"):
        OnlineKFMC.from_state({**state, "params": {**state["params"], "speed": 1}})
    stream = state["stream"]
    with pytest.raises(ValueError, match="record 'Secret'"):
        OnlineKFMC.from_state({**state, "stream": {**stream, "record": "Secret"}})
    with pytest.raises(ValueError, match="record None"):
        from_state({"center": 1})
    with pytest.raises(ValueError, match=r"samples.*damaged, or from another version"):
        from_state({k: v for k, v in stream.items() if k != "samples"})
    with pytest.raises(ValueError, match="damaged"):
        from_state({**stream, "more": 1})


def test_a_kernel_of_the_user_cannot_be_saved():
    @dataclass(frozen=True)
    class Mine(RBF):
        pass

    @dataclass(frozen=True)
    class RBF_(RBF):
        pass

    RBF_.__name__ = "RBF"  # is none of ours, whatever it is called
    for kernel in (Mine(1.0), RBF_(1.0)):
        with pytest.raises(TypeError, match="not one of hirank's own"):
            OnlineKFMC(kernel=kernel).get_state()
    with pytest.raises(TypeError, match="can't be saved"):
        to_state(object())
