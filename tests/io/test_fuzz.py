"""Damaged files: a table or a clear error, nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hirank.exceptions import FileError
from hirank.io import create, open_table

SUFFIXES = ["csv", "txt", "csv.gz", "parquet", "arrow", "npy", "xlsx"]
ROUNDS = {"csv": 150, "xlsx": 25}

pytestmark = pytest.mark.slow


def attempt(path):
    """Read and write the file; whether it was one."""
    try:
        with open_table(path) as file:
            table = file.read()
            assert sum(map(len, file.chunks(7))) == len(table)
            with create(path.with_name("fuzz_out.csv"), like=file, force=True) as writer:
                writer.write(table, np.zeros(table.numbers.shape))
    except FileError:
        return False
    return True


@given(st.binary(max_size=80), st.sampled_from(SUFFIXES))
def test_random_bytes(tmp_path_factory, data, suffix):
    if suffix in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    if suffix == "xlsx":
        pytest.importorskip("openpyxl")
    path = tmp_path_factory.getbasetemp() / f"bytes.{suffix}"
    path.write_bytes(data)
    attempt(path)


@given(st.text("a1,;\t|\"'\r\n .-", max_size=60), st.sampled_from(["csv", "tsv", "txt"]))
def test_random_text(tmp_path_factory, text, suffix):
    path = tmp_path_factory.getbasetemp() / f"text.{suffix}"
    path.write_bytes(text.encode())
    attempt(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_mutated_files(tmp_path, suffix):
    module = {"parquet": "pyarrow", "arrow": "pyarrow", "xlsx": "openpyxl"}.get(suffix)
    if module:
        pytest.importorskip(module)
    words = suffix != "npy"
    start = tmp_path / "start.csv"
    rows = [f'{i},{i / 7:.3f},"w,{i}"' if words else f"{i},{i / 7:.3f},{i}" for i in range(40)]
    start.write_text("\n".join(["a,b,c", *rows, ",,", ""]))
    path = tmp_path / f"t.{suffix}"
    with open_table(start) as file, create(path, like=file) as writer:
        table = file.read()
        writer.write(table, np.full(table.numbers.shape, np.nan))
    good = path.read_bytes()
    assert attempt(path)
    random = np.random.default_rng(0)
    bad = 0
    for _ in range(ROUNDS.get(suffix, 60)):
        data = bytearray(good)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            data[place] = random.integers(256)
        if random.random() < 0.3:
            del data[random.integers(len(data)) :]
        path.write_bytes(data)
        bad += not attempt(path)
    assert bad
