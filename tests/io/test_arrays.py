import numpy as np
import pytest

from hirank.exceptions import FileError, OutputError
from hirank.io import create, open_table

GAPS = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, 6.0]])
FILLED = np.array([[1.0, 9.0, 3.0], [9.0, 5.0, 6.0]])


def complete(path, rows=None, fill=9.0, **options):
    target = path.with_stem("out")
    with open_table(path, **options) as file, create(target, file, force=True) as writer:
        for part in [file.read()] if rows is None else file.chunks(rows):
            writer.write(part, np.full(part.numbers.shape, fill))
    return target


@pytest.mark.parametrize("rows", [None, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f4"])
def test_npy(tmp_path, rows, dtype):
    np.save(tmp_path / "t.npy", np.asfortranarray(GAPS.astype(dtype)))
    with open_table(tmp_path / "t.npy") as file:
        assert file.names == ("column 1", "column 2", "column 3")
        assert file.format == "npy"
    out = np.load(complete(tmp_path / "t.npy", rows))
    np.testing.assert_array_equal(out, FILLED)
    assert out.dtype == dtype


def test_whole_numbers(tmp_path):
    large = 2**60 + 1
    np.save(tmp_path / "t.npy", np.array([[-200, 2], [3, large]]))
    out = np.load(complete(tmp_path / "t.npy", missing=["-200"]))
    assert out.tolist() == [[9, 2], [3, large]]
    assert out.dtype == np.int64
    with pytest.raises(OutputError, match=f'{large} in column "column 2" would be rounded'):
        complete(tmp_path / "t.npy", missing=["-200"], fill=0.5)


def test_infinity_passes_through(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[np.inf, 2], [3, np.nan]]))
    with open_table(tmp_path / "t.npy") as file:
        assert file.read().text == ("column 1",)
    assert np.load(complete(tmp_path / "t.npy")).tolist() == [[np.inf, 2], [3, 9]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array([["a"]]), "type <U1"),
        (np.zeros((2, 2), complex), "type complex128"),
        (np.zeros((2, 0)), r"shape \(2, 0\)"),
    ],
)
def test_arrays_that_are_not_a_matrix_of_numbers(tmp_path, array, message):
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(FileError, match=message):
        open_table(tmp_path / "t.npy")


def test_pickles_are_not_loaded(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[print]], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="type object"):
        open_table(tmp_path / "t.npy")


@pytest.mark.parametrize("data", [b"", b"a,b\n1,2\n", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_other_files_are_not_read(tmp_path, data):
    path = tmp_path / "t.npy"
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"Not an? \.npy file"):
        open_table(path)
