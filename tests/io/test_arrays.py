import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.sparse import csc_matrix

from hirank.io import FileError, create, open_table

HOLES = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, 6.0]])
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
    np.save(tmp_path / "t.npy", np.asfortranarray(HOLES.astype(dtype)))
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
    out = np.load(complete(tmp_path / "t.npy", missing=["-200"], fill=0.5))
    assert out.tolist() == [[0.5, 2.0], [3.0, float(large)]]


def test_infinity_passes_through(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[np.inf, 2], [3, np.nan]]))
    with open_table(tmp_path / "t.npy") as file:
        assert file.read().text == ("column 1",)
    assert np.load(complete(tmp_path / "t.npy")).tolist() == [[np.inf, 2], [3, 9]]


def test_npz_keeps_the_others(tmp_path):
    np.savez(tmp_path / "t.npz", X=HOLES, y=np.arange(2), names=np.array(["a", "b"]))
    out = np.load(complete(tmp_path / "t.npz"))
    np.testing.assert_array_equal(out["X"], FILLED)
    np.testing.assert_array_equal(out["y"], [0, 1])
    np.testing.assert_array_equal(out["names"], ["a", "b"])


def test_keys(tmp_path):
    np.savez(tmp_path / "t.npz", A=HOLES, B=np.zeros((3, 3)))
    with pytest.raises(FileError, match=r"several arrays.*A \(2, 3\), B \(3, 3\)"):
        open_table(tmp_path / "t.npz")
    with pytest.raises(FileError, match='no variable "C"'):
        open_table(tmp_path / "t.npz", key="C")
    out = np.load(complete(tmp_path / "t.npz", key="A"))
    np.testing.assert_array_equal(out["A"], FILLED)
    np.testing.assert_array_equal(out["B"], np.zeros((3, 3)))


def test_a_small_matrix_beside_a_larger_array_is_not_taken(tmp_path):
    np.savez(tmp_path / "t.npz", K=np.eye(3), x=np.zeros((3, 10, 5)))
    with pytest.raises(FileError, match=r"by its key: K \(3, 3\), x \(3, 10, 5\)"):
        open_table(tmp_path / "t.npz")
    assert len(open_table(tmp_path / "t.npz", key="K").names) == 3


def test_mat_keeps_the_others(tmp_path):
    others = {"s": {"a": 1.0, "b": "text"}, "v": np.arange(3), "sp": csc_matrix(np.eye(2))}
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = "x", np.eye(3)
    savemat(tmp_path / "t.mat", {"X": HOLES, "c": cell, **others})
    out = loadmat(complete(tmp_path / "t.mat"))
    np.testing.assert_array_equal(out["X"], FILLED)
    np.testing.assert_array_equal(out["v"], [[0, 1, 2]])
    assert out["s"]["b"][0, 0].item() == "text"
    np.testing.assert_array_equal(out["sp"].toarray(), np.eye(2))
    np.testing.assert_array_equal(out["c"][0, 1], np.eye(3))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), "1 dimensions"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.array([["a"]]), "no numbers"),
        (np.zeros((2, 2), complex), "no numbers"),
        (np.zeros((2, 0)), "without columns"),
    ],
)
def test_no_tables(tmp_path, array, message):
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(FileError, match=message):
        open_table(tmp_path / "t.npy")
    np.savez(tmp_path / "t.npz", X=array)
    with pytest.raises(FileError, match="no matrix"):
        open_table(tmp_path / "t.npz")


def test_pickles_are_not_loaded(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[print]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "t.npz", X=np.array([[print]], dtype=object))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(FileError, match="damaged"):
            open_table(tmp_path / name)


@pytest.mark.parametrize("suffix", ["npy", "npz", "mat"])
@pytest.mark.parametrize("data", [b"", b"a,b\n1,2\n", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_other_files(tmp_path, suffix, data):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"not a \.|is empty|no matrix"):
        open_table(path)


def test_a_type_of_numbers_that_does_not_exist(tmp_path):
    savemat(tmp_path / "t.mat", {"X": HOLES})
    data = bytearray((tmp_path / "t.mat").read_bytes())
    place = data.rindex(np.float64(6.0).tobytes()) - 5 * 8 - 8
    assert data[place] == 9  # double precision
    data[place] = 99  # SciPy's reader would take its type from beyond the end of a list
    (tmp_path / "t.mat").write_bytes(data)
    with pytest.raises(FileError, match="no known type"):
        open_table(tmp_path / "t.mat")


def test_matlab_7_3(tmp_path):
    (tmp_path / "t.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))
    with pytest.raises(FileError, match="-v7"):
        open_table(tmp_path / "t.mat")
