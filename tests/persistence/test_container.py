import io
import json
import os
import pickle
import stat
import zipfile

import numpy as np
import pytest
from helpers.model_mutations import packed, parts

from hirank.online.prequential import HISTORY
from hirank.persistence import container
from hirank.persistence.container import ModelFileError, read, read_header, write
from hirank.persistence.encoding import npy_bytes

STATE = {
    "numbers": [0, -3, 2**60, 1.5, -0.0, 1e-308, float("nan"), float("inf"), float("-inf")],
    "words": ["", "Größe", "\ud800", 'with "quotes"\n'],
    "flags": [True, False, None],
    "arrays": {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0, 3)), "c": np.ones(2, bool)},
    "lines": np.ones(2, HISTORY),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.hirank"
    write(path, {"kind": "test", "error": float("nan")}, STATE)
    return path


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return (type(a), repr(a)) == (type(b), repr(b))


def test_what_was_written_is_read(path):
    header, state = read(path)
    assert same(state, STATE)
    assert same(header, read_header(path))
    assert (header["magic"], header["format"], header["kind"]) == ("hirank model", 1, "test")
    assert np.isnan(header["error"])


def test_equal_models_make_equal_files(path, tmp_path):
    write(tmp_path / "b.hirank", {"kind": "test", "error": float("nan")}, STATE)
    assert (tmp_path / "b.hirank").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_arrays_lie_in_memory_as_they_did(tmp_path, axes):
    array = np.arange(24.0).reshape(2, 3, 4).transpose(axes)
    write(tmp_path / "a", {}, [array])
    (again,) = read(tmp_path / "a")[1]
    assert (again == array).all()
    assert again.strides == array.strides


def test_numpy_reads_the_arrays(path):
    with np.load(path, allow_pickle=False) as file:
        assert (file["arrays/00000"] == np.arange(6.0).reshape(2, 3)).all()
    lines = io.BytesIO(npy_bytes(np.ones(2, HISTORY)))
    assert np.load(lines, allow_pickle=False).dtype == HISTORY


@pytest.mark.parametrize(
    "array", [np.array([None]), np.array(["a"]), np.array([1j]), np.zeros(2, "M8[s]")]
)
def test_arrays_of_anything_but_numbers_are_not_written(tmp_path, array):
    with pytest.raises(ValueError, match="can't be kept"):
        write(tmp_path / "a", {}, [array])
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("state", [object(), {"array": 1}, {1: 2}, {"x": 1j}, np.float64(1)])
def test_what_json_has_no_words_for_is_not_written(tmp_path, state):
    with pytest.raises(TypeError, match=r"can't be (saved|a name)"):
        write(tmp_path / "a", {}, [state] if not isinstance(state, dict) else state)


def test_a_header_has_no_arrays(tmp_path):
    with pytest.raises(TypeError, match="can't be saved"):
        write(tmp_path / "a", {"x": np.zeros(2)}, None)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(path, {}, [np.zeros(5)])
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


def test_a_file_is_as_public_as_others(path):
    other = path.with_name("other")
    other.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_link_stays_a_link(path):
    link = path.with_name("link")
    link.symlink_to(path)
    write(link, {"kind": "new"}, None)
    assert link.is_symlink()
    assert read_header(path)["kind"] == "new"


def changed(path, change):
    """The file with its members changed, and a checksum that is right."""
    members = parts(path.read_bytes())
    members.pop("sha256")
    path.write_bytes(packed(change(members) or [*members.items()]))


def refused(path, match):
    for reader in (read, read_header):
        with pytest.raises(ModelFileError, match=match) as caught:
            reader(path)
        assert str(path) in str(caught.value)


def test_other_files_are_no_models(tmp_path):
    other = tmp_path / "a"
    for data in (b"", b"PK", b"a,b\n1,2\n", pickle.dumps({"a": 1})):
        other.write_bytes(data)
        refused(other, r"no hirank model file.*KFMC\.save")
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("[Content_Types].xml", "<xml/>")
    refused(other, "some other zip")
    np.savez(tmp_path / "b.npz", a=np.zeros(3))
    refused(tmp_path / "b.npz", "some other zip")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")


def test_every_truncation_is_noticed(path):
    data = path.read_bytes()
    for end in range(4, len(data), 7):
        path.write_bytes(data[:end])
        refused(path, r"damaged or was cut off.*Save the model again")


def test_every_changed_byte_of_the_contents_is_noticed(path):
    data = path.read_bytes()
    at = [data.index(b"hirank model"), data.index(b"quotes"), data.index(b"\x93NUMPY") + 140]
    for i in at:
        path.write_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :])
        refused(path, "damaged")


def test_a_checksum_that_is_wrong(path):
    members = parts(path.read_bytes())
    wrong = "0" * 64
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in members.items():
            file.writestr(name, wrong if name == "sha256" else data)
    path.write_bytes(out.getvalue())
    refused(path, "checksum does not match")


def test_a_later_format_says_to_update(path):
    def later(members):
        header = json.loads(members["header.json"])
        members["header.json"] = json.dumps({**header, "format": 2, "hirank": "9.1"}).encode()
        return [*members.items(), ("something new", b"")]

    changed(path, later)
    refused(path, r"format 2, written by hirank 9\.1.*up to 1.*pip install -U")


@pytest.mark.parametrize("version", [0, -1, "1", None, True, 1.0])
def test_there_is_no_such_format(path, version):
    def wrong(members):
        header = json.loads(members["header.json"])
        members["header.json"] = json.dumps({**header, "format": version}).encode()

    changed(path, wrong)
    refused(path, "damaged: there is no format")


def test_another_magic_is_no_model(path):
    changed(path, lambda members: members.update({"header.json": b'{"magic": "x"}'}))
    refused(path, "no hirank model file")


def test_unexpected_missing_and_moved_members(path):
    data = path.read_bytes()

    def order(names):
        return lambda members: [(name, members.get(name, b"")) for name in names]

    names = [*parts(data)][:-1]
    for wrong in ([*names, "x"], names[:-1], [*names[:-2], names[-1], names[-2]]):
        changed(path, order(wrong))
        with pytest.raises(ModelFileError, match="damaged"):
            read(path)
        path.write_bytes(data)
    changed(path, order([*names, names[-1]]))
    refused(path, "two parts of the same name")


def test_bombs_are_not_unpacked(path):
    members = parts(path.read_bytes())
    members.pop("sha256")
    members["state.json"] = b" " * 10**6
    path.write_bytes(packed([*members.items()], zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < 10**5
    refused(path, "not stored as it should")


@pytest.mark.parametrize("shape", [[2**40, 2**40], [2**47], [-1], [6, 1], [2.0, 3], "x", [2] * 9])
def test_sizes_are_checked_before_anything_is_allocated(path, shape):
    def huge(members):
        state = json.loads(members["state.json"])
        state["arrays"]["a"]["shape"] = shape
        members["state.json"] = json.dumps(state).encode()

    changed(path, huge)
    with pytest.raises(ModelFileError, match=r"damaged: (there is no array|an array|.* no array)"):
        read(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[NaN]", "no JSON"),
        ("[1e999]", "no number"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[" * 100_000, "damaged"),
        ("[" * 60 + "]" * 60, "nested too deeply"),
        ("[" + "1" * 5000 + "]", "damaged"),
        ('{"number": "12"}', "no number"),
        ('{"number": []}', "no number"),
        ('{"array": 0}', "no array"),
        ('{"array": 9, "dtype": "<f8", "shape": [1]}', "not there"),
        ('{"array": 0, "dtype": "|O", "shape": [2, 3]}', "can't be kept"),
        ('{"array": 0, "dtype": [["a", "|O"]], "shape": [2, 3]}', "can't be kept"),
        ('{"array": 0, "dtype": "<f8", "shape": [2, 3], "axes": [0, 0]}', "not the axes"),
        ('{"array": 0, "dtype": "<f8", "shape": [2, 3], "axes": 1}', "no axes"),
        ('{"array": 0, "dtype": "<i8", "shape": [2, 3]}', "something else"),
        ("null", "belong to nothing"),
        ("", "damaged"),
        ("\x00", "damaged"),
    ],
)
def test_json_is_strict(path, text, match):
    changed(path, lambda members: members.update({"state.json": text.encode()}))
    with pytest.raises(ModelFileError, match=match):
        read(path)


def test_an_array_that_is_used_twice(path):
    one = '{"array": 0, "dtype": "<f8", "shape": [2, 3]}'
    changed(path, lambda members: members.update({"state.json": f"[{one}, {one}]".encode()}))
    with pytest.raises(ModelFileError, match="used twice"):
        read(path)


def test_bool_arrays_hold_nothing_else(tmp_path):
    write(tmp_path / "a", {}, [np.ones(3, bool)])
    changed(
        tmp_path / "a",
        lambda members: members.update(
            {"arrays/00000.npy": members["arrays/00000.npy"][:-1] + b"\x02"}
        ),
    )
    with pytest.raises(ModelFileError, match="bool"):
        read(tmp_path / "a")
