import io
import json
import os
import pickle
import stat
import zipfile

import numpy as np
import pytest
from helpers.model_mutations import pack, sign, unpack

from hirank.exceptions import ModelFileError
from hirank.online.prequential import HISTORY
from hirank.persistence import container
from hirank.persistence.container import FORMAT, read, read_header, write
from hirank.persistence.encoding import to_npy

STATE = {
    "numbers": [0, -3, 2**60, 1.5, -0.0, 1e-308, float("nan"), float("inf"), float("-inf")],
    "strings": ["", "Größe", "\ud800", 'with "quotes"\n'],
    "flags": [True, False, None],
    "arrays": {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0, 3)), "c": np.ones(2, bool)},
    "lines": np.ones(2, HISTORY),
    "number": [1],
    "array": {"number": "no number"},
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
    assert (header["magic"], header["format"], header["kind"]) == ("hirank model", FORMAT, "test")
    assert np.isnan(header["error"])


def test_equal_models_make_equal_files(path, tmp_path):
    write(tmp_path / "b.hirank", {"kind": "test", "error": float("nan")}, STATE)

    assert (tmp_path / "b.hirank").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0)])
def test_arrays_keep_c_or_fortran_order(tmp_path, axes):
    array = np.arange(24.0).reshape(2, 3, 4).transpose(axes)
    write(tmp_path / "a", {}, [array])

    (restored,) = read(tmp_path / "a")[1]

    assert (restored == array).all()
    assert restored.strides == array.strides


def test_numpy_and_json_read_the_parts(path):
    def reject(name):
        raise AssertionError(f"{name} is not strict JSON")

    with np.load(path, allow_pickle=False) as file:
        assert (file["arrays/00000"] == np.arange(6.0).reshape(2, 3)).all()
    lines = io.BytesIO(to_npy(np.ones(2, HISTORY)))
    assert np.load(lines, allow_pickle=False).dtype == HISTORY
    for name in ("header.json", "state.json"):
        text = unpack(path.read_bytes())[name].decode("utf-8", "surrogatepass")
        assert json.loads(text, parse_constant=reject)


@pytest.mark.parametrize("state", [object(), {"x": 1j}, {(1, 2): 3}, {1, 2}, b"x"])
def test_only_numbers_strings_and_arrays_are_written(tmp_path, state):
    with pytest.raises(TypeError):
        write(tmp_path / "a", {}, state)
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write(tmp_path / "a", {}, [np.array([None])])
    assert not [*tmp_path.iterdir()]


def test_a_header_has_no_arrays(tmp_path):
    with pytest.raises(TypeError, match="ndarray"):
        write(tmp_path / "a", {"x": np.zeros(2)}, None)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
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


def change_parts(path, change):
    """Change the parts of a file; its checksum is right again."""
    parts = unpack(path.read_bytes())
    path.write_bytes(pack(change(parts) or [*parts.items()]))


def assert_rejected(path, match, readers=(read, read_header)):
    for reader in readers:
        with pytest.raises(ModelFileError, match=match) as caught:
            reader(path)
        assert caught.value.path == path
        assert str(caught.value) == f"{path}: {caught.value.problem}"


def test_other_files_are_not_models(tmp_path):
    other = tmp_path / "a"
    for data in (b"", b"PK", b"a,b\n1,2\n", pickle.dumps({"a": 1})):
        other.write_bytes(data)
        assert_rejected(other, "not a hirank model file.*method save")
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("[Content_Types].xml", "<xml/>")
    assert_rejected(other, "not a hirank model file")
    np.savez(tmp_path / "b.npz", a=np.zeros(3))
    assert_rejected(tmp_path / "b.npz", "not a hirank model file")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")


def test_every_truncation_is_noticed(path):
    data = path.read_bytes()
    name_ends = container.ZIP_HEADER + len(container.HEADER)
    for end in range(name_ends, len(data), 7):
        path.write_bytes(data[:end])
        assert_rejected(path, r"damaged or cut off.*Save the model again")


def test_every_changed_byte_is_noticed(path):
    data = path.read_bytes()
    for i in range(0, len(data), 5):
        path.write_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :])
        assert_rejected(path, "damaged or cut off|not a hirank model file")


def change_header(path, **changes):
    def change(parts):
        header = json.loads(parts["header.json"])
        parts["header.json"] = json.dumps({**header, **changes}).encode()
        return [*parts.items(), ("something new", b"")]

    change_parts(path, change)


def test_a_later_format_asks_for_an_update(path):
    change_header(path, format=FORMAT + 1, hirank="9.1")

    assert_rejected(
        path, rf"format {FORMAT + 1}, written by hirank 9\.1.*reads format {FORMAT}.*pip install -U"
    )


@pytest.mark.parametrize("version", [0, -1, 1, "2", None, True, 2.0, []])
def test_other_formats_are_rejected(path, version):
    change_header(path, format=version)

    assert_rejected(path, "has format .*Save the model again")


@pytest.mark.parametrize("header", [b'{"magic": "x"}', b"[]", b"null"])
def test_another_header_is_not_that_of_a_model(path, header):
    change_parts(path, lambda parts: parts.update({"header.json": header}))

    assert_rejected(path, "not a hirank model file")


def test_unexpected_missing_and_moved_parts_are_rejected(path):
    data = path.read_bytes()

    def order(names):
        return lambda parts: [(name, parts.get(name, b"")) for name in names]

    names = [*unpack(data)]
    moved = [*names[:-2], names[-1], names[-2]]
    for wrong in ([*names, "x"], names[:-1], names[:1], moved, [*names, names[-1]]):
        change_parts(path, order(wrong))
        assert_rejected(path, "damaged", readers=[read])
        path.write_bytes(data)


def test_compressed_parts_are_not_read(path):
    parts = {**unpack(path.read_bytes()), "state.json": b" " * 10**6}
    path.write_bytes(pack([*parts.items()], zipfile.ZIP_DEFLATED))

    assert path.stat().st_size < 10**5
    assert_rejected(path, "compressed")


def test_parts_larger_than_the_file_are_not_read(path):
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")  # the entry of the first part in the zip's directory
    for size in (20, 24):
        data[at + size : at + size + 4] = (2**30).to_bytes(4, "little")
    path.write_bytes(sign(bytes(data)))

    assert_rejected(path, "larger than the file")


@pytest.mark.parametrize(
    "shape", ["(1099511627776, 1099511627776)", "(-1,)", "(6, 1)", "(2.0, 3)", "x", "(", "[2, 3]"]
)
def test_sizes_are_checked_before_anything_is_allocated(path, shape):
    def enlarge(parts):
        old, new = b"(2, 3)", shape.encode()
        data = parts["arrays/00000.npy"].replace(old, new, 1)
        size = len(data) - len(parts["arrays/00000.npy"])
        head = int.from_bytes(data[8:10], "little") + size
        parts["arrays/00000.npy"] = data[:8] + head.to_bytes(2, "little") + data[10:]
        parts["arrays/00000.npy"] = parts["arrays/00000.npy"][: 10 + head] + bytes(56)

    change_parts(path, enlarge)
    assert_rejected(path, "damaged", readers=[read])


@pytest.mark.parametrize("dtype", ["|O", "|S8", "<M8[s]", "<c16", "[('a', '|O')]", "('<f8', (2,))"])
def test_arrays_consist_of_numbers(path, dtype):
    text = dtype if dtype[0] in "[(" else repr(dtype)

    def retype(parts):
        head = f"{{'descr': {text}, 'fortran_order': False, 'shape': (2, 3), }}\n".encode()
        prefix = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little")
        parts["arrays/00000.npy"] = prefix + head + bytes(48)

    change_parts(path, retype)
    assert_rejected(path, "damaged", readers=[read])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[" * 100_000, "damaged"),
        ("[" + "1" * 5000 + "]", "damaged"),
        ('{"array": 9}', "array 9 does not exist"),
        ('{"array": "0"}', "does not exist"),
        ('[{"array": 0}, {"array": 0}]', "array 0 does not exist, or is used twice"),
        ("null", "array 0 is not used"),
        ("", "damaged"),
        ("\x00", "damaged"),
    ],
)
def test_json_that_is_wrong_is_rejected(path, text, match):
    change_parts(path, lambda parts: parts.update({"state.json": text.encode()}))

    assert_rejected(path, match, readers=[read])


def test_arrays_of_bool_consist_of_0_and_1(tmp_path):
    path = tmp_path / "a"
    write(path, {}, [np.ones(3, bool)])

    change_parts(
        path,
        lambda parts: parts.update({"arrays/00000.npy": parts["arrays/00000.npy"][:-1] + b"\x02"}),
    )

    assert_rejected(path, "bool", readers=[read])
