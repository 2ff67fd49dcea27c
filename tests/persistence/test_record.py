import json
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import numpy as np
import pytest
from helpers.saved_state import differences, flatten, load, save

from hirank import OnlineImputer, OnlineKFMC
from hirank._typing import Array, BoolArray, IntArray, SavedAs, Shape
from hirank.kernels import RBF, Kernel, Poly
from hirank.models.mixture import Mixture
from hirank.persistence.record import decode, encode

QUICK = {"n_warmup": 40, "batch_size": 20, "max_iter": 10, "random_state": 0}
ESTIMATORS = {OnlineImputer: {**QUICK, "window": 60}, OnlineKFMC: QUICK}


class Color(Enum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    values: Annotated[Array, Shape("n 2")]
    counts: Annotated[IntArray, Shape("n")]

    def check(self) -> None:
        if (self.counts < 0).any():
            raise ValueError("counts must not be negative")


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part | Mixture, ...]
    kernel: Annotated[Kernel, SavedAs(RBF | Poly)]
    color: Color
    known: Annotated[BoolArray, Shape("m")] | None
    gaps: Annotated[Array, Shape("m", finite=False)]
    loss: Annotated[float, Shape("", finite=False)]
    params: dict[str, str | int | float]
    count: int
    name: str | None


@pytest.fixture
def whole():
    mixture = Mixture(np.ones(1), np.zeros((1, 3)), np.eye(3)[None])
    parts = (Part(np.zeros((4, 2)), np.arange(4)), mixture)
    params = {"kernel": "rbf", "n_components": 3, "beta": 0.5}
    gaps = np.array([np.nan, np.inf, 1.0])
    known = np.array([True, False, True])
    return Whole(parts, Poly(3, 0.5), Color.RED, known, gaps, np.inf, params, 2, None)


def test_a_record_is_restored_by_its_declared_types(whole):
    state = encode(whole)

    restored = decode(Whole, state)

    assert not differences(encode(restored), state)
    assert [type(part) for part in restored.parts] == [Part, Mixture]
    assert restored.params == whole.params
    assert (restored.kernel, restored.color, restored.name) == (Poly(3, 0.5), Color.RED, None)


WRONG = {
    "model.parts[1].covariances: v is 2, expected 3": ("parts", 1, "covariances", np.eye(2)[None]),
    "model.parts[1]: weights must be nonnegative": ("parts", 1, "weights", np.zeros(1)),
    "model.parts[0].values: 2 is 3, expected 2": ("parts", 0, "values", np.zeros((4, 3))),
    "model.parts[0].counts: n is 5, expected 4": ("parts", 0, "counts", np.zeros(5, int)),
    "model.parts[0]: counts must not be negative": ("parts", 0, "counts", -np.ones(4, int)),
    "model.parts[0].counts: must be an array of int64": ("parts", 0, "counts", np.zeros(4)),
    "model.parts[0].values: must be finite": ("parts", 0, "values", np.full((4, 2), np.nan)),
    "model.parts[0]: must be one of Part, Mixture; got": ("parts", 0, "type", "os.system"),
    "model.parts: must be a list; got int": ("parts", 7),
    "model.kernel: must be one of RBF, Poly": ("kernel", "type", "Whole"),
    "model.kernel: degree must be": ("kernel", "degree", 0),
    "model.kernel.degree: must be of type int; got True": ("kernel", "degree", True),
    "model.color: 'blue' is not a valid Color": ("color", "blue"),
    "model.gaps: m is 3, expected 2": ("known", np.zeros(2, bool)),
    "model.known: must be an array of bool": ("known", np.zeros(3)),
    "model.loss: must be of type float; got 'x'": ("loss", "x"),
    "model.params: must be a dict; got []": ("params", []),
    "model.params['a']: must be one of str, int, float; got [1]": ("params", "items", [["a", [1]]]),
    "model.params: must be pairs": ("params", "items", [["a"]]),
    "model.count: must be of type int; got -1": ("count", -1),
    "model.name: must be of type str; got 3": ("name", 3),
    "model: must be a Whole with the fields parts, kernel": ("more", 1),
}


@pytest.mark.parametrize("message", WRONG)
def test_an_error_names_the_place(message, whole):
    state = encode(whole)
    *where, last, value = WRONG[message]
    at: Any = state
    for key in where:
        at = at[key]
    at[last] = value
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        decode(Whole, state)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, -3, 0.5, "auto", 2**70, RBF(), RBF(2.0), Poly(3, 0.5)),
        *(
            (),
            [],
            {},
            (0, None),
            [(0, None), (None, 1)],
            {"a": (0, 1), -1: [None, ("b",)], 0.5: {}},
        ),
    ],
)
def test_parameters_are_restored_with_their_types(value):
    state = json.loads(json.dumps(encode(value)))

    assert repr(decode(Any, state)) == repr(value)


def test_numbers_and_collections_of_other_libraries_can_be_parameters():
    pd = pytest.importorskip("pandas")

    assert decode(Any, encode(np.float32(0.5))) == 0.5
    assert type(decode(Any, encode(np.bool_(True)))) is bool
    assert (decode(Any, encode(np.eye(2))) == np.eye(2)).all()
    assert decode(Any, encode(pd.Index(["a", "b"]))) == ["a", "b"]
    assert decode(Any, encode(np.array(["a", "b"]))) == ["a", "b"]
    assert decode(Any, encode(range(2))) == [0, 1]
    assert decode(Any, encode({"a": np.int64(1)})) == {"a": 1}


@pytest.mark.parametrize(
    "state",
    [
        *({}, {"type": "os.system"}, {"type": "list"}, {"type": "dict", "items": [[[], 1]]}),
        *({"type": []}, object(), {"type": "RBF"}, {"type": "RBF", "sigma": -1}),
    ],
)
def test_parameters_of_unknown_types_are_rejected(state):
    with pytest.raises(ValueError, match="params"):
        decode(Any, state, "params")


def test_a_kernel_of_the_user_cannot_be_saved():
    @dataclass(frozen=True)
    class Mine(RBF):
        pass

    @dataclass(frozen=True)
    class RBF_(RBF):
        pass

    RBF_.__name__ = "RBF"  # not one of hirank's kernels, whatever its name
    for kernel in (Mine(1.0), RBF_(1.0)):
        with pytest.raises(TypeError, match="it must be one of hirank's, RBF or Poly"):
            OnlineImputer(kernel=kernel).get_state()
    with pytest.raises(TypeError, match="cannot be saved"):
        encode(object())


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda kind: kind.__name__)
def estimator(request):
    return request.param


@pytest.fixture(scope="module")
def state(estimator, stream):
    model = estimator(kernel=RBF(3.0), **ESTIMATORS[estimator])
    return model.partial_fit(stream.X[:110]).get_state()


def test_a_state_consists_of_arrays_numbers_and_strings(state):
    for path, leaf in flatten(state).items():
        if isinstance(leaf, np.ndarray):
            assert not leaf.dtype.hasobject, path
        else:
            assert leaf is None or type(leaf) in (bool, int, float, str), path


def test_a_stream_continues_from_a_saved_state(estimator, state, stream, tmp_path):
    save(state, tmp_path / "state")
    restored = load(tmp_path / "state")
    assert not differences(restored, state)
    one, two = estimator.from_state(state), estimator.from_state(restored)

    rows = stream.X[110:150]
    assert (one.partial_fit_transform(rows) == two.partial_fit_transform(rows)).all()
    assert not differences(one.get_state(), two.get_state())


def test_a_state_and_a_model_share_no_memory(estimator, state):
    given = deepcopy(state)
    model = estimator.from_state(given)
    for handed_out in (given, model.get_state()):
        for leaf in flatten(handed_out).values():
            if isinstance(leaf, np.ndarray):
                leaf[...] = np.zeros((), leaf.dtype)

    assert not differences(model.get_state(), state)


def test_a_state_before_the_first_row(estimator):
    model = estimator(7, missing_values=-1, random_state=3)

    restored = estimator.from_state(model.get_state())

    assert restored.get_params() == model.get_params()
    assert not hasattr(restored, "n_features_in_")


def test_a_random_state_object_is_saved_as_the_seed_it_gave(estimator, stream):
    params = {**ESTIMATORS[estimator], "random_state": np.random.RandomState(5)}
    model = estimator(**params).partial_fit(stream.X[:50])
    restored = estimator.from_state(model.get_state())

    for m in (model, restored):
        m.partial_fit(stream.X[50:100])

    assert (restored.dictionary_ == model.dictionary_).all()


def test_the_output_container_is_part_of_the_state(estimator, state, stream):
    pd = pytest.importorskip("pandas")
    model = estimator.from_state(state).set_output(transform="pandas")

    restored = estimator.from_state(model.get_state())

    assert isinstance(restored.transform(stream.X[:3]), pd.DataFrame)


def test_another_format_is_rejected(estimator, state):
    with pytest.raises(ValueError, match=r"format 99.*reads format 2"):
        estimator.from_state({**state, "format": 99})
    with pytest.raises(ValueError, match="format None"):
        estimator.from_state({})


@pytest.mark.parametrize("part", ["params", "feature_names", "record", "output"])
def test_a_state_without_one_of_its_parts_is_rejected(estimator, state, part):
    with pytest.raises(ValueError, match=part):
        estimator.from_state({k: v for k, v in state.items() if k != part})


def test_a_state_with_an_unknown_parameter_or_of_another_estimator_is_rejected(estimator, state):
    more = {"type": "dict", "items": [*state["params"]["items"], ["speed", 1]]}
    with pytest.raises(ValueError, match=r"another version of hirank.*speed"):
        estimator.from_state({**state, "params": more})
    (other,) = ESTIMATORS.keys() - {estimator}
    with pytest.raises(ValueError, match=r"another version of hirank|must be"):
        other.from_state(state)
