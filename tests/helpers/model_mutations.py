"""Model files that were damaged or changed in many ways, and what must come of them."""

from __future__ import annotations

import copy
import hashlib
import io
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import hirank
from helpers.estimators import FAST_SEARCH
from helpers.usage import measured
from hirank.exceptions import ModelFileError
from hirank.models.dictionary import Dictionary
from hirank.models.factor_analysis import FactorAnalyzer
from hirank.models.mixture import Mixture
from hirank.models.routed import RoutedDictionaries
from hirank.models.weighted import WeightedModel
from hirank.persistence.container import DIGEST_SIZE, FORMAT, HEADER, MAGIC, STATE, read
from hirank.persistence.encoding import to_json

Rng = np.random.Generator
MAX_LOADING_MEGABYTES = 100.0
"""Memory to load a file, beyond what its size explains: docs/model-files.md promises it."""
WRONG: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**53, 2**63, 10**30, 0.0, -0.5, 0.5, 1e-300, 1e300),
    *(float("nan"), float("inf"), float("-inf"), "", "rbf", "Poly", "nan", "x" * 1000, "\ud800"),
    *([], [[]], [1, 2], {}, {"type": "RBF", "sigma": 1e-300}, {"type": "dict"}),
    *({"type": "list", "items": [1]}, {"type": "dict", "items": [[[], 1]]}, {"array": 0}),
    *({"type": "os.system", "command": "true"}, {"number": "nan"}),
]
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, 1e30, -1e30, 0.0, -1.0, 1.0, 1e6]


def fit_models() -> dict[str, Any]:
    """Return small models of all kinds, 4 features each."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 60)
    X = np.column_stack([t, t**2, np.cos(3 * t), t + rng.normal(size=60)])
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = np.where(np.isnan(X[:, 0]), 0.5, X[:, 0])
    quick: dict[str, Any] = {"max_iter": 5, "random_state": 0}
    stack: dict[str, Any] = {"n_init": 1, **quick}
    stream: dict[str, Any] = {"n_components": 5, "n_warmup": 30, **quick}
    limits = {1: (-4, None), 2: (None, 4)}
    with warnings.catch_warnings(), mock.patch.object(hirank.Imputer, "_config", FAST_SEARCH):
        warnings.simplefilter("ignore")
        models = {
            "stack": hirank.Imputer(bounds=limits, add_indicator=True, **stack).fit(X),
            "time": hirank.Imputer(time=True, integers=[3], scale="robust", **stack).fit(X),
            "small": hirank.Imputer(**stack).fit(X[:10]),
            "dictionary": hirank.KFMC(5, bounds=(-4, 4), **quick).fit(X),
            "poly": hirank.KFMC(4, kernel="poly", solver="newton", **quick).fit(X),
            "window": hirank.OnlineImputer(window=40, batch_size=10, **stream).partial_fit(X),
            "algorithm2": hirank.OnlineKFMC(**stream).partial_fit(X),
        }
    dictionary = models["dictionary"]._fitted.model
    assert isinstance(dictionary, Dictionary)
    weighted = WeightedModel(np.linspace(0.5, 1.5, dictionary.width), dictionary)
    v = dictionary.width
    router = Mixture(np.full(2, 0.5), np.eye(2, v), np.tile(np.eye(v), (2, 1, 1)))
    routed = RoutedDictionaries(router, (dictionary, dictionary), np.array([1e-3, 1e-4]))
    return {
        **models,
        "weighted": with_first_model(models["stack"], weighted),
        "routed": with_first_model(models["stack"], routed),
        "factors": with_factor_analysis(models["stack"]),
    }


def with_first_model(
    imputer: hirank.Imputer, model: WeightedModel | RoutedDictionaries
) -> hirank.Imputer:
    """Return an Imputer whose first model is another one."""
    fitted = imputer._fitted
    models = (model, *fitted.model.models[1:])
    changed = copy.copy(imputer)
    changed.__dict__["_record"] = replace(fitted, model=replace(fitted.model, models=models))
    return changed


def with_factor_analysis(imputer: hirank.Imputer) -> hirank.Imputer:
    """Return an Imputer whose first model, and that of its intervals, is a factor analysis."""
    fitted = imputer._fitted
    loadings = np.array([[0.5, 0.0, -0.5, 1.0], [0.0, 0.3, 0.4, 0.1]])
    model = FactorAnalyzer(np.linspace(-0.1, 0.1, 4), loadings, np.linspace(0.1, 0.5, 4))
    stack = replace(fitted.model, models=(model, *fitted.model.models[1:]))
    changed = copy.copy(imputer)
    changed.__dict__["_record"] = replace(fitted, model=stack, mixture=model)
    return changed


def rows_to_impute() -> np.ndarray:
    """Return ordinary rows with missing entries, 3 x 4."""
    X = np.array([[0.1, 0.2, 0.9, 0.0], [-0.5, 0.3, 0.1, -1.0], [0.9, 0.8, -0.9, 1.5]])
    X[[0, 1, 2, 2], [1, 2, 0, 3]] = np.nan
    return X


def load_and_use(path: Path) -> str:
    """Return "loaded", or "rejected: ..." with the reason; raise if that is not clear."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        problem = None
        try:
            model = hirank.load(path)
        except ModelFileError as error:
            problem = error
        if problem is not None:
            assert problem.path == path
            assert str(problem) == f"{path}: {problem.problem}"
            assert 30 < len(str(problem)) < 1000, problem
            assert str(problem).isprintable(), problem
            return f"rejected: {problem.problem}"
        if not model.__sklearn_is_fitted__():  # a stream before its first fit
            return "loaded"
        X = rows_to_impute()
        filled = model.set_output(transform="default").transform(X)[:, :4]
        further = use(model, X)
    known = ~np.isnan(X) & (model.missing_values != X)
    assert (filled[known] == X[known]).all()
    gaps = getattr(model, "max_gap", None) is not None
    assert (np.isfinite(filled) | (gaps & np.isnan(filled))).all()
    assert gaps or np.isfinite(further).all()
    return "loaded"


def use(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the results of the other methods of a model: numbers that should be finite."""
    if hasattr(model, "partial_fit"):
        return model.partial_fit_transform(np.vstack([X] * 4))
    if isinstance(model, hirank.KFMC):
        return model.dictionary_
    assert "fitted in" in str(model.summary())
    assert len(model.search_results_["family"])
    model.held_out_  # noqa: B018
    return np.zeros(1) if model._fitted.calibration is None else np.stack(model.interval(X))


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the parts of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def sign(data: bytes) -> bytes:
    """Return the bytes of a model file with the right checksum."""
    data = data[:-DIGEST_SIZE]
    return data + hashlib.sha256(data).hexdigest().encode()


def pack(parts: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip of parts, with the right checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that occur twice
        for name, data in parts:
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compression)
        file.comment = bytes(DIGEST_SIZE)
    return sign(out.getvalue())


def forge(header: dict[str, Any], state: Any) -> bytes:
    """Return the model file of any header and state, without the limits of `write`."""
    arrays: list[bytes] = []
    described = to_json({"magic": MAGIC, "format": FORMAT, **header})
    parts = [(HEADER, described), (STATE, to_json(state, arrays))]
    return pack([*parts, *((f"arrays/{i:05d}.npy", part) for i, part in enumerate(arrays))])


# Mutations of bytes: of a whole file, or of one part of it.


def flip_bits(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for at in rng.integers(len(data), size=rng.integers(1, 5)):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(data: bytes, rng: Rng) -> bytes:
    return data[: rng.integers(len(data))]


def swap_blocks(data: bytes, rng: Rng) -> bytes:
    size = int(rng.choice([16, 64, 512]))
    a, b = sorted(rng.integers(0, len(data) - size, 2))
    b = max(b, a + size)
    return (
        data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]
    )


def cut_or_double(data: bytes, rng: Rng) -> bytes:
    a, b = sorted(rng.integers(0, len(data), 2))
    return data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:]


OF_BYTES: list[Callable[[bytes, Rng], bytes]] = [flip_bits, truncate, swap_blocks, cut_or_double]


# Mutations of files. All but one in fifty have the right checksum, so that they reach the decoder.


def change_file(data: bytes, rng: Rng) -> bytes:
    mutation = OF_BYTES[rng.integers(len(OF_BYTES))]
    if rng.random() < 0.1:
        return mutation(data, rng)
    return sign(mutation(data[:-DIGEST_SIZE], rng) + bytes(DIGEST_SIZE))


def move_parts(data: bytes, rng: Rng) -> bytes:
    parts = [*unpack(data).items()]
    i, j = rng.integers(len(parts), size=2)
    what = rng.integers(6)
    if what == 0:
        parts[i], parts[j] = parts[j], parts[i]
    elif what == 1:
        parts[i], parts[j] = (parts[i][0], parts[j][1]), (parts[j][0], parts[i][1])
    elif what == 2:
        del parts[i]
    elif what == 3:
        parts.insert(i, parts[j])
    elif what == 4:
        parts.append((str(rng.choice(["x.py", "../x", "arrays/99999.npy"])), b"1"))
    else:
        return pack(parts, zipfile.ZIP_DEFLATED)
    return pack(parts)


def change_part(data: bytes, rng: Rng) -> bytes:
    parts = unpack(data)
    name = str(rng.choice([HEADER, STATE, *parts]))
    if len(parts[name]) > 600 or name in (HEADER, STATE):
        parts[name] = OF_BYTES[rng.integers(len(OF_BYTES))](parts[name], rng)
    else:
        parts[name] = flip_bits(parts[name], rng)
    return pack([*parts.items()])


# Mutations of the state.


def places(state: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) in nested dicts and lists."""
    pairs = enumerate(state) if isinstance(state, list) else state.items()
    found = []
    for key, value in pairs:
        found.append((state, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def change_state(state: Any, rng: Rng) -> Any:
    """Return nested dicts and lists with something else at one place."""
    state = copy.deepcopy(state)
    found = places(state)
    if not found:
        return WRONG[rng.integers(len(WRONG))]
    (at, key), (other, its) = (found[i] for i in rng.integers(len(found), size=2))
    what = rng.integers(7)
    if what <= 1:
        at[key] = copy.deepcopy(WRONG[rng.integers(len(WRONG))])
    elif what == 2:
        del at[key]
    elif what == 3:
        at[key] = [at[key]] if rng.random() < 0.5 else {"type": "list", "items": [at[key]]}
    elif what == 4:
        at[key] = copy.deepcopy(other[its])
    elif what == 5 and isinstance(at, dict):
        at["other" if rng.random() < 0.5 else str(key) + "_"] = at.pop(key)
    else:
        names = [(a, k) for a, k in found if k == "type"]
        if names:
            (a, k), (b, _) = (names[i] for i in rng.integers(len(names), size=2))
            a[k] = b["type"]
    return state


def change_array(state: Any, rng: Rng) -> Any:
    """Return the state with other numbers, another type or another shape in one array."""
    state = copy.deepcopy(state)
    found = [(a, k) for a, k in places(state) if isinstance(a[k], np.ndarray)]
    at, key = found[rng.integers(len(found))]
    array = at[key].copy()
    what = rng.integers(8)
    if what <= 2 and array.size and array.dtype.names is None:
        flat = array.reshape(-1)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            new = np.array(NUMBERS[rng.integers(len(NUMBERS))]).astype(array.dtype)
        flat[rng.integers(len(flat)) if what else slice(None)] = new
    elif what == 3 and array.dtype.names is None:
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["f4", "f8", "i8", "i4", "?", "u1"]))
    elif what == 4:
        array = array[:-1] if rng.random() < 0.5 else np.concatenate([array, array])
    elif what == 5:
        array = array.reshape(-1) if rng.random() < 0.5 else array[None]
    elif what == 6 and array.dtype.names is None:
        array = (array.T if rng.random() < 0.5 else rng.permuted(array)).copy()
    elif array.dtype.names is None:
        with np.errstate(all="ignore"):
            factor = rng.choice([-1.0, 1e-200, 1e200, 1e9, 1e-9])
            array = (array * factor).astype(array.dtype)
    at[key] = array
    return state


def enlarge(state: Any, rng: Rng) -> Any:
    """Return the state with one thing in it, or all arrays of one length, far larger."""
    state = copy.deepcopy(state)
    found = places(state)
    at, key = found[rng.integers(len(found))]
    value, times = at[key], int(10 ** rng.uniform(1, 5.5))
    if isinstance(value, np.ndarray) and value.size:
        axis = int(rng.integers(value.ndim))
        for other, its in found if rng.random() < 0.5 else [(at, key)]:
            array = other[its]
            if isinstance(array, np.ndarray) and array.shape[axis : axis + 1] == (
                value.shape[axis],
            ):
                other[its] = np.repeat(
                    array, max(1, min(times, 10**6 // max(array.size, 1))), axis=axis
                )
    elif isinstance(value, str):
        at[key] = value * times
    elif isinstance(value, bool | int | float):
        at[key] = type(value)(value * 10.0 ** rng.integers(1, 16))
    elif isinstance(value, list):
        at[key] = [copy.deepcopy(part) for part in value * min(times, 3000)]
    elif isinstance(value, dict):
        for _ in range(times % 2000):
            value = {"type": "list", "items": [value]}
        at[key] = value
    return state


OF_FILE: list[Callable[[bytes, Rng], bytes]] = [change_file, move_parts, *[change_part] * 2]
OF_STATE: list[Callable[[Any, Rng], Any]] = [
    *[change_state] * 4,
    *[change_array] * 4,
    *[enlarge] * 4,
]


@dataclass
class Outcome:
    """What came of many mutated files."""

    counts: dict[str, int] = field(default_factory=lambda: {"rejected": 0, "loaded": 0})
    checksums: int = 0  # of those rejected because their checksum does not match
    max_seconds: float = 0.0
    max_megabytes: float = 0.0  # beyond three times the size of the file


def mutate(
    models: dict[str, Any],
    folder: Path,
    count: int,
    seed: int = 0,
    max_seconds: float = 5.0,
    max_megabytes: float = 300.0,
    report: Callable[[int, Outcome], None] = lambda number, outcome: None,
) -> Outcome:
    """Mutate the files of models so many times, load and use each, and measure that.

    A file that takes longer than `max_seconds`, or more memory than `max_megabytes` beyond what
    its size explains, to load and use, is a failure; to load alone it must take far less. `report`
    is called with every number of mutations and what came of them.
    """
    rng = np.random.default_rng(seed)
    saved = {}
    for name, model in models.items():
        model.save(folder / f"{name}.hirank")
        saved[name] = (folder / f"{name}.hirank").read_bytes(), read(folder / f"{name}.hirank")
    outcome, names, path = Outcome(), [*saved], folder / "mutated.hirank"
    for number in range(count):
        data, (header, state) = saved[names[number % len(names)]]
        mutation = [*OF_FILE, *OF_STATE][rng.integers(len(OF_FILE) + len(OF_STATE))]
        try:
            if mutation in OF_FILE:
                changed = mutation(data, rng)
            elif rng.random() < 0.9:
                changed = forge(header, mutation(state, rng))
            else:
                changed = forge(change_state(header, rng), state)
        except (TypeError, ValueError, UnicodeError, RecursionError):
            continue  # not even the container can hold it
        path.write_bytes(changed)
        try:
            _try_file(path, outcome, max_seconds, max_megabytes)
        except BaseException:
            kept = folder / "failed.hirank"
            kept.write_bytes(changed)
            print(f"mutation {number} of {names[number % len(names)]}, {mutation.__name__}: {kept}")
            raise  # whatever it is
        report(number + 1, outcome)
    return outcome


def _try_file(path: Path, outcome: Outcome, max_seconds: float, max_megabytes: float) -> None:
    with measured() as loading, suppress(ModelFileError):
        hirank.load(path)
    with measured() as usage:
        result = load_and_use(path)
    outcome.counts[result.split(":")[0]] += 1
    outcome.checksums += "checksum does not match" in result
    # A file, its arrays and what is computed from them: as docs/model-files.md promises.
    explained = 3 * path.stat().st_size / 1e6
    beyond = usage.megabytes - explained
    assert loading.megabytes - explained < MAX_LOADING_MEGABYTES, loading
    outcome.max_seconds = max(outcome.max_seconds, usage.seconds)
    outcome.max_megabytes = max(outcome.max_megabytes, beyond)
    assert usage.seconds < max_seconds, usage
    assert beyond < max_megabytes, usage
