"""Model files that would take much time or memory: rejected, or loaded at little cost."""

import copy
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.model_mutations import forge, pack, rows_to_impute, unpack
from helpers.usage import measured

import hirank
from hirank.exceptions import ModelFileError
from hirank.models.dictionary import MAX_POINTS, MAX_ROUNDS, MAX_STAGES
from hirank.persistence.container import HEADER, STATE, read, read_header, write

MAX_SECONDS = 1.0  # promised in docs/model-files.md
MAX_MEGABYTES = 100.0  # beyond the file itself


@pytest.fixture(scope="module")
def saved(models, tmp_path_factory):
    """Return header and state of a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save(folder / name)
    return {path.name: read(path) for path in folder.iterdir()}


def points(record: Any, *, r: int = 5, stages: int = 1, rounds: int = 1) -> None:
    model = record["model"]
    model["D"] = np.random.default_rng(0).normal(size=(r, model["D"].shape[1]))
    model["settings"], model["rounds"] = [model["settings"][0]] * stages, rounds


def degree(record: Any) -> None:
    kernel = {"type": "Poly", "degree": 2**53, "offset": 1.0}
    record["model"]["setting"]["kernel"] = kernel


def only(record: Any, models: list[Any], families: list[str]) -> None:
    stack, held_out = record["model"], record["search"]["held_out"]
    stack["models"], stack["families"] = models, families
    stack["weights"] = np.full(len(models), 1 / len(models))
    held_out["by_family"] = np.tile(held_out["imputed"][:, None], len(set(families)))


def subspace(record: Any) -> None:
    basis = np.random.default_rng(0).normal(size=(7000, 4))
    only(record, [{"type": "Subspace", "basis": basis, "ridge": 1.0, "constant": None}], ["a"])


def components(record: Any) -> None:
    K = 100_000
    mixture = record["mixture"]
    mixture["weights"], mixture["means"] = np.full(K, 1 / K), np.zeros((K, 4))
    mixture["covariances"] = np.tile(np.eye(4), (K, 1, 1))


def many_models(record: Any) -> None:
    one = record["model"]["models"][-1]
    only(record, [copy.deepcopy(one) for _ in range(3000)], ["a"] * 3000)


def large_models(record: Any) -> None:
    weighted = record["model"]["models"][0]
    points(weighted, r=1500, stages=10, rounds=14)
    only(record, [copy.deepcopy(weighted) for _ in range(20)], ["a"] * 20)


def long_family(record: Any) -> None:
    one = record["model"]["models"][-1]
    families = ["x" * 3_000_000, *["a"] * 200]
    only(record, [copy.deepcopy(one) for _ in families], families)


def long_trial_name(record: Any) -> None:
    trials = record["search"]["trials"]
    record["search"]["trials"] = [{**trials[0], "family": "x" * 300_000}, *trials * 20]


REJECTED: list[tuple[str, Callable[[Any], None], str]] = [
    ("dictionary", lambda record: points(record, r=20_000), "at most 2000 points"),
    ("dictionary", lambda record: points(record, stages=1000), "up to 15 settings"),
    ("dictionary", lambda record: points(record, rounds=100), "1 to 30 rounds"),
    ("dictionary", lambda record: points(record, stages=30_000), "at most .* values"),
    ("algorithm2", degree, "degree must be an integer from 1 to 100"),
    ("stack", subspace, "a basis of 1 to 4 rows"),
    ("stack", components, "at most 100 components"),
    ("stack", many_models, "at most 2000 parts"),
    ("weighted", large_models, "multiplications"),
    ("stack", long_trial_name, "names must have at most 200 characters"),
]


@pytest.mark.parametrize(("name", "change", "message"), REJECTED)
def test_a_file_of_a_costly_model_is_rejected_at_once(name, change, message, saved, tmp_path):
    header, state = copy.deepcopy(saved[name])
    change(state["record"])
    path = tmp_path / "forged.hirank"
    path.write_bytes(forge(header, state))

    with measured() as usage, pytest.raises(ModelFileError, match=message):
        hirank.load(path)

    check_usage(usage, path)


def test_names_of_families_take_no_more_memory_than_they_have(saved, tmp_path):
    header, state = copy.deepcopy(saved["stack"])
    long_family(state["record"])
    path = tmp_path / "forged.hirank"
    path.write_bytes(forge(header, state))

    with measured() as usage:
        hirank.load(path)

    check_usage(usage, path)


def test_the_most_costly_model_that_is_allowed_is_loaded_without_being_tried_out(saved, tmp_path):
    header, state = copy.deepcopy(saved["dictionary"])
    points(state["record"], r=MAX_POINTS, stages=MAX_STAGES, rounds=MAX_ROUNDS)
    path = tmp_path / "forged.hirank"
    path.write_bytes(forge(header, state))

    with measured() as usage:
        hirank.load(path)

    check_usage(usage, path)


@pytest.mark.slow
def test_a_row_of_the_most_costly_model_takes_less_than_a_minute(saved, tmp_path):
    header, state = copy.deepcopy(saved["dictionary"])
    points(state["record"], r=MAX_POINTS, stages=MAX_STAGES, rounds=MAX_ROUNDS)
    path = tmp_path / "forged.hirank"
    path.write_bytes(forge(header, state))
    model = hirank.load(path)

    with measured() as usage:
        filled = model.transform(rows_to_impute())

    assert np.isfinite(filled).all()
    assert usage.seconds < 60  # 1.3 s of CPU were measured, and 371 MB
    assert usage.megabytes < 450  # of which what is prepared and kept may take 256


def test_a_model_of_many_features_without_values_is_loaded_without_being_tried_out(saved, tmp_path):
    header, state = copy.deepcopy(saved["dictionary"])
    columns = state["record"]["columns"]
    columns["has_values"] = np.append(columns["has_values"], np.zeros(5_000_000, bool))
    header["model"]["n_features_in"] = len(columns["has_values"])
    path = tmp_path / "forged.hirank"
    path.write_bytes(forge(header, state))

    with measured() as usage:
        model = hirank.load(path)

    assert model.n_features_in_ == 5_000_004
    check_usage(usage, path)


@pytest.mark.parametrize("part", [HEADER, STATE])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" + b"[]," * 3_000_000 + b"[]]", "at most"),
        (b'["' + "\U0001f600".encode() + b"x" * 30_000_000 + b'"]', "bytes"),
        (b"[" * 90_000, "recursion"),
        (b"[" + b"1" * 3_000_000 + b"]", "digits"),
    ],
    ids=["values", "bytes", "nesting", "digits"],
)
def test_json_that_takes_much_memory_is_rejected(part, text, message, saved, tmp_path):
    parts = unpack(forge(*saved["stack"]))
    parts[part] = text
    path = tmp_path / "forged.hirank"
    path.write_bytes(pack([*parts.items()]))

    with measured() as usage, pytest.raises(ModelFileError, match=message):
        hirank.load(path)

    check_usage(usage, path)


def test_parts_that_expand_are_rejected_before_they_are_read(saved, tmp_path):
    parts = unpack(forge(*saved["stack"]))
    parts["arrays/00000.npy"] = bytes(250_000_000)
    path = tmp_path / "forged.hirank"
    path.write_bytes(pack([*parts.items()], zipfile.ZIP_DEFLATED))
    del parts

    with measured() as usage, pytest.raises(ModelFileError, match="compressed"):
        hirank.load(path)

    check_usage(usage, path)


def test_many_parts_are_rejected_before_the_directory_is_read(saved, tmp_path):
    parts = [*unpack(forge(*saved["stack"])).items()]
    parts += [(f"arrays/{i:05d}.npy", b"") for i in range(len(parts) - 2, 60_000)]
    path = tmp_path / "forged.hirank"
    path.write_bytes(pack(parts))

    with measured() as usage, pytest.raises(ModelFileError, match="at most 2000 parts"):
        read_header(path)

    check_usage(usage, path)


def test_the_shape_of_an_array_is_checked_before_it_is_allocated(saved, tmp_path):
    parts = unpack(forge(*saved["stack"]))
    name = "arrays/00000.npy"
    described = parts[name][: parts[name].index(b"\n")]
    huge = b"'shape': (%d, 1000000)" % 10**6
    forged = described.replace(b"'shape': (4,)", huge)
    assert forged != described
    parts[name] = forged[: len(described)] + parts[name][len(described) :]
    path = tmp_path / "forged.hirank"
    path.write_bytes(pack([*parts.items()]))

    with measured() as usage, pytest.raises(ModelFileError, match="size of its shape"):
        hirank.load(path)

    check_usage(usage, path)


def test_a_file_that_is_not_a_model_is_not_read(tmp_path):
    path = tmp_path / "large.bin"
    with open(path, "wb") as file:
        file.truncate(400_000_000)

    with measured() as usage, pytest.raises(ModelFileError, match="not a hirank model file"):
        hirank.load(path)

    assert usage.megabytes < MAX_MEGABYTES


def test_what_could_not_be_loaded_is_not_written(tmp_path):
    path = tmp_path / "model.hirank"
    with pytest.raises(ValueError, match="at most 2000 parts"):
        write(path, {}, [np.zeros(1)] * 3000)
    with pytest.raises(ValueError, match="values"):
        write(path, {}, [0] * 300_000)
    assert not path.exists()


def check_usage(usage, path):
    assert usage.seconds < MAX_SECONDS
    assert usage.megabytes < MAX_MEGABYTES + path.stat().st_size / 1e6
