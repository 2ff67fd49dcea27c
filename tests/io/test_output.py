import os
import resource
import stat
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from hirank.exceptions import FileError, OutputError, OutputExistsError
from hirank.io import create, open_table

FORMATS = ["csv", "csv.gz", "parquet", "arrow", "npy", "xlsx"]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(b"a,b\n1,\n,4\n")
    return path


def needs(suffix):
    module = {"parquet": "pyarrow", "arrow": "pyarrow", "xlsx": "openpyxl"}.get(suffix)
    if module:
        pytest.importorskip(module)


def fill(source, target, **options):
    with open_table(source) as file:
        table = file.read()
        with create(target, like=file, **options) as writer:
            writer.write(table, np.full(table.numbers.shape, 2.0))


def test_an_existing_file_is_kept_without_force(source, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("precious")
    with pytest.raises(OutputExistsError, match=r"already exists\. Pass --force") as raised:
        fill(source, target)
    assert raised.value.path == target
    assert target.read_text() == "precious"
    fill(source, target, force=True)
    assert target.read_bytes() == b"a,b\n1,2\n2,4\n"


def test_the_input_is_kept_without_force(source, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    for target in (source, link):
        with pytest.raises(OutputExistsError):
            fill(source, target)
    fill(source, source, force=True)
    assert source.read_bytes() == b"a,b\n1,2\n2,4\n"


def test_a_file_that_another_process_creates_meanwhile_is_kept(source, tmp_path):
    target = tmp_path / "out.csv"
    with (
        open_table(source) as file,
        pytest.raises(OutputExistsError, match="Another process created it"),
        create(target, like=file),
    ):
        target.write_text("precious")
    assert target.read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.csv"]


def test_permissions_and_links_stay(source, tmp_path):
    target, link = tmp_path / "folder" / "out.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    target.touch()
    target.chmod(0o640)
    link.symlink_to(target)
    fill(source, link, force=True)
    assert link.is_symlink()
    assert target.read_bytes() == b"a,b\n1,2\n2,4\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    fill(source, tmp_path / "new.csv")
    (tmp_path / "plain").touch()
    modes = [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("new.csv", "plain")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_leaves_nothing(source, tmp_path, suffix, error):
    needs(suffix)
    target = tmp_path / f"out.{suffix}"

    def run():
        with open_table(source) as file, create(target, like=file) as writer:
            table = file.read()
            writer.write(table, np.zeros(table.numbers.shape))
            assert len(os.listdir(tmp_path)) == 2
            raise error

    with pytest.raises(error):
        run()
    assert os.listdir(tmp_path) == ["in.csv"]


@contextmanager
def file_size_limit(size):
    """No file of this process may be longer: an error as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk_leaves_the_old_file(source, tmp_path, suffix):
    needs(suffix)
    target = tmp_path / f"out.{suffix}"
    target.write_text("precious")

    with file_size_limit(4), pytest.raises(OutputError, match="exceeds the maximal size"):
        fill(source, target, force=True)

    assert target.read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["in.csv", target.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_device(source):
    with pytest.raises(OutputError, match="No space is left"):
        fill(source, "/dev/full")
    os.mkfifo(source.with_name("pipe.npy"))
    with pytest.raises(OutputError, match="cannot be written to a pipe"):
        fill(source, source.with_name("pipe.npy"))


def test_a_disk_that_is_full_after_some_rows_leaves_no_file(source, tmp_path):
    def run():
        with open_table(source) as file, create(tmp_path / "out.csv", like=file) as writer:
            table = file.read()
            for _ in range(10_000):
                writer.write(table, np.zeros((2, 2)))

    with file_size_limit(20_000), pytest.raises(OutputError, match="exceeds the maximal size"):
        run()

    assert os.listdir(tmp_path) == ["in.csv"]


def test_bad_targets(source, tmp_path):
    with pytest.raises(OutputError, match="The folder does not exist"):
        fill(source, tmp_path / "no" / "out.csv")
    with pytest.raises(OutputError, match="This is a folder"):
        fill(source, tmp_path)
    with pytest.raises(OutputError, match="Unknown file format"):
        fill(source, tmp_path / "out.doc")
    with pytest.raises(OutputError, match="Unknown file format"):
        fill(source, tmp_path / "out.parquet.gz")
    with pytest.raises(ValueError, match="digits"):
        fill(source, tmp_path / "out.csv", digits=0)


def test_values_of_another_shape_or_infinite_values_are_an_error(source, tmp_path):
    with open_table(source) as file:
        table = file.read()
        writer = create(tmp_path / "out.csv", like=file)
        with pytest.raises(RuntimeError, match="with block"):
            writer.write(table, table.numbers)
        with writer:
            with pytest.raises(ValueError, match="filled must have shape"):
                writer.write(table, np.zeros((2, 3)))
            with pytest.raises(ValueError, match="infinite"):
                writer.write(table, np.full((2, 2), np.inf))
            with pytest.raises(ValueError, match="longer"):
                writer.write(table, table.numbers, {"u": np.zeros(3)})


def test_two_runs_at_once(source, tmp_path):
    target = tmp_path / "out.csv"
    with open_table(source) as file:
        table = file.read()
        first, second = (create(target, like=file, force=True) for _ in range(2))
        with first, second:
            first.write(table, np.full((2, 2), 5.0))
            second.write(table, np.full((2, 2), 6.0))
    assert target.read_bytes() == b"a,b\n1,5\n5,4\n"  # the one that ended last
    assert len(os.listdir(tmp_path)) == 2


def test_standard_output(source, capfdbinary):
    fill(source, "-")
    assert capfdbinary.readouterr().out == b"a,b\n1,2\n2,4\n"


def test_digits(source, tmp_path):
    with open_table(source) as file, create(tmp_path / "o.csv", like=file, digits=3) as writer:
        writer.write(file.read(), np.full((2, 2), np.pi))
    assert (tmp_path / "o.csv").read_bytes() == b"a,b\n1,3.14\n3.14,4\n"


def test_a_missing_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    for name in ("t.parquet", "t.xlsx"):
        (tmp_path / name).write_bytes(b"PK")
        with pytest.raises(FileError, match=r"requires \w+\. Install it by pip install"):
            open_table(tmp_path / name)
