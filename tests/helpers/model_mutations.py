"""Model files that were damaged or tampered with, in many ways, and what must come of them."""

import copy
import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hirank
from hirank.persistence.container import CHECKSUM, HEADER, STATE, ModelFileError, read, write

Rng = np.random.Generator
WRONG: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**53, 2**63, 10**30, 0.0, -0.5, 0.5, 1e-300, 1e300),
    *(float("nan"), float("inf"), float("-inf"), "", "rbf", "Poly", "nan", "x" * 1000, "\ud800"),
    *([], [[]], [1, 2], {}, {"record": "RBF", "sigma": 1e-300}, {"record": "dict"}),
    *({"record": "list", "items": [1]}, {"record": "os.system", "command": "true"}),
]
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, 1e30, -1e30, 0.0, -1.0, 1.0, 1e6]


def fitted_models() -> dict[str, Any]:
    """Small models of all kinds, 3 or 4 features each."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 60)
    X = np.column_stack([t, t**2, np.cos(3 * t), t + rng.normal(size=60)])
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = np.where(np.isnan(X[:, 0]), 0.5, X[:, 0])
    quick: dict[str, Any] = {"max_iter": 5, "random_state": 0, "n_starts": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "blend": hirank.KFMC(5, bounds=(-4, 4), add_indicator=True, **quick).fit(X),
            "time": hirank.KFMC(5, order="time", integers=[3], scale="robust", **quick).fit(X),
            "small": hirank.KFMC(**quick).fit(X[:10]),
            "poly": hirank.KFMC(4, kernel="poly", solver="newton", **quick).fit(X),
            "window": hirank.OnlineKFMC(
                5, window=40, n_start=30, batch_size=10, max_iter=5, random_state=0
            ).partial_fit(X),
            "paper": hirank.OnlineKFMC(
                5, mode="paper", n_start=30, max_iter=5, random_state=0
            ).partial_fit(X),
        }


def table() -> np.ndarray:
    """Rows to complete: ordinary ones, 4 features."""
    X = np.array([[0.1, 0.2, 0.9, 0.0], [-0.5, 0.3, 0.1, -1.0], [0.9, 0.8, -0.9, 1.5]])
    X[[0, 1, 2, 2], [1, 2, 0, 3]] = np.nan
    return X


def outcome(path: Path) -> str:
    """Load and use a file; raises AssertionError unless it is refused clearly, or all is well."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        problem = ""
        try:
            model = hirank.load(path)
        except ModelFileError as error:
            problem = str(error)
        if problem:
            assert str(path) in problem
            assert 30 < len(problem) < 1000, problem
            assert problem.isprintable(), problem
            return "refused"
        if getattr(model, "_stream", model) is not model and model._stream.model is None:
            return "loaded"
        X = table()
        filled = model.set_output(transform="default").transform(X)[:, :4]
        more = used(model, X)
    known = ~np.isnan(X) & (model.missing_values != X)
    assert (filled[known] == X[known]).all()
    gaps = getattr(model, "max_gap", None) is not None
    assert (np.isfinite(filled) | (gaps & np.isnan(filled))).all()
    assert gaps or np.isfinite(more).all()
    return "loaded"


def used(model: Any, X: np.ndarray) -> np.ndarray:
    """What else a model is for: numbers that should be finite."""
    if isinstance(model, hirank.OnlineKFMC):
        return model.partial_fit_transform(np.vstack([X] * 4))
    assert "fitted in" in str(model.summary())
    return np.zeros(1) if model._confidence is None else np.stack(model.interval(X))


def parts(data: bytes) -> dict[str, bytes]:
    """The members of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of members, the checksum right again."""
    digest = hashlib.sha256()
    for name, data in members:
        digest.update(f"{name}\n{len(data)}\n".encode() + data)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are there twice
        for name, data in [*members, (CHECKSUM, digest.hexdigest().encode())]:
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compression)
    return out.getvalue()


# Mutations of the bytes, the checksum left as it was.


def flipped(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for at in rng.integers(len(data), size=rng.integers(1, 5)):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncated(data: bytes, rng: Rng) -> bytes:
    return data[: rng.integers(len(data))]


def blocks_swapped(data: bytes, rng: Rng) -> bytes:
    size = int(rng.choice([16, 64, 512]))
    a, b = sorted(rng.integers(0, len(data) - size, 2))
    b = max(b, a + size)
    return (
        data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]
    )


def cut_or_doubled(data: bytes, rng: Rng) -> bytes:
    a, b = sorted(rng.integers(0, len(data), 2))
    return data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:]


# Mutations of the members, with a checksum that is right.


def members_moved(data: bytes, rng: Rng) -> bytes:
    members = [*parts(data).items()][:-1]
    i, j = rng.integers(len(members), size=2)
    what = rng.integers(6)
    if what == 0:
        members[i], members[j] = members[j], members[i]
    elif what == 1:
        members[i], members[j] = (members[i][0], members[j][1]), (members[j][0], members[i][1])
    elif what == 2:
        del members[i]
    elif what == 3:
        members.insert(i, members[j])
    elif what == 4:
        members.append((str(rng.choice(["x.py", "../x", "arrays/99999.npy"])), b"1"))
    else:
        return packed(members, zipfile.ZIP_DEFLATED)
    return packed(members)


def text_changed(data: bytes, rng: Rng) -> bytes:
    members = parts(data)
    members.pop(CHECKSUM)
    name = str(rng.choice([HEADER, STATE]))
    what = rng.integers(3)
    if what == 0:
        members[name] = flipped(members[name], rng)
    elif what == 1:
        members[name] = cut_or_doubled(members[name], rng)
    else:
        plain = json.loads(members[name].decode("utf-8", "surrogatepass"))
        changed = state_changed(plain, rng)
        members[name] = json.dumps(changed).encode()
    return packed([*members.items()])


# Mutations of the state.


def places(state: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in nested dicts and lists."""
    pairs = enumerate(state) if isinstance(state, list) else state.items()
    found = []
    for key, value in pairs:
        found.append((state, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def state_changed(state: Any, rng: Rng) -> Any:
    """One place of nested dicts and lists is something else."""
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
        at[key] = [at[key]] if rng.random() < 0.5 else {"record": "list", "items": [at[key]]}
    elif what == 4:
        at[key] = copy.deepcopy(other[its])
    elif what == 5 and isinstance(at, dict):
        at["other" if rng.random() < 0.5 else str(key) + "_"] = at.pop(key)
    else:
        names = [(a, k) for a, k in found if k == "record"]
        if names:
            (a, k), (b, _) = (names[i] for i in rng.integers(len(names), size=2))
            a[k] = b["record"]
    return state


def array_changed(state: Any, rng: Rng) -> Any:
    """One array has other numbers, another type, or another shape."""
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


BYTES: list[Callable[[bytes, Rng], bytes]] = [
    *(flipped, truncated, blocks_swapped, cut_or_doubled, members_moved, text_changed)
]
STATES: list[Callable[[Any, Rng], Any]] = [
    state_changed,
    state_changed,
    array_changed,
    array_changed,
]


def run(models: dict[str, Any], folder: Path, count: int, seed: int = 0) -> dict[str, int]:
    """Mutate the files of models so many times, and count what came of it."""
    rng = np.random.default_rng(seed)
    saved = {}
    for name, model in models.items():
        model.save(folder / f"{name}.hirank")
        saved[name] = (folder / f"{name}.hirank").read_bytes(), read(folder / f"{name}.hirank")
    counts = {"refused": 0, "loaded": 0}
    names, path = [*saved], folder / "mutated.hirank"
    for number in range(count):
        data, (header, state) = saved[names[number % len(names)]]
        change = [*BYTES, *STATES][rng.integers(len(BYTES) + len(STATES))]
        if change in BYTES:
            path.write_bytes(change(data, rng))
        else:
            where = state if rng.random() < 0.9 else header
            try:
                if where is state:
                    write(path, header, change(state, rng))
                else:
                    write(path, state_changed(header, rng), state)
            except (TypeError, ValueError, UnicodeError):
                continue  # even the container can't hold it
        try:
            counts[outcome(path)] += 1
        except BaseException:
            kept = folder / "failed.hirank"
            kept.write_bytes(path.read_bytes())
            print(f"mutation {number} of {names[number % len(names)]}, {change.__name__}: {kept}")
            raise  # whatever it is
    return counts
