import errno
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from hirank.io import FileError, OutputError, create, open_table
from hirank.io.output import Replacement

FORMATS = ["csv", "csv.gz", "parquet", "arrow", "npy", "npz", "mat", "xlsx"]


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


def test_a_file_that_is_there_is_kept(source, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("precious")
    with pytest.raises(OutputError, match=r"there is such a file already.*--force"):
        fill(source, target)
    assert target.read_text() == "precious"
    fill(source, target, force=True)
    assert target.read_bytes() == b"a,b\n1,2\n2,4\n"


def test_the_input_is_kept(source, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    for target in (source, link):
        with pytest.raises(OutputError, match="this is the input"):
            fill(source, target)
    fill(source, source, force=True)
    assert source.read_bytes() == b"a,b\n1,2\n2,4\n"


def test_a_file_that_appears_meanwhile_is_kept(source, tmp_path):
    target = tmp_path / "out.csv"
    with (
        open_table(source) as file,
        pytest.raises(OutputError, match="meanwhile"),
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


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk(source, tmp_path, suffix, monkeypatch):
    needs(suffix)
    opened = Replacement.open

    class Full:
        """A file on a disk without space."""

        def __init__(self, file):
            self._file = file

        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def __getattr__(self, name):
            return getattr(self._file, name)

    def full(self):
        self.file = Full(opened(self))
        return self.file

    monkeypatch.setattr(Replacement, "open", full)
    target = tmp_path / f"out.{suffix}"
    target.write_text("precious")
    with pytest.raises(OutputError, match="no space left"):
        fill(source, target, force=True)
    assert target.read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["in.csv", target.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_device(source):
    with pytest.raises(OutputError, match="no space left"):
        fill(source, "/dev/full")
    os.mkfifo(source.with_name("pipe.npy"))
    with pytest.raises(OutputError, match="only text"):
        fill(source, source.with_name("pipe.npy"))


def test_a_real_limit_on_the_size_of_files(source, tmp_path):
    code = """if True:
        import resource, signal, sys
        import numpy as np
        from hirank.io import FileError, create, open_table
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        with open_table(sys.argv[1]) as file:
            table = file.read()
            try:
                with create(sys.argv[2], like=file) as writer:
                    for _ in range(10_000):
                        writer.write(table, np.zeros((2, 2)))
            except FileError as error:
                print(error)
    """
    argv = [sys.executable, "-c", code, str(source), str(tmp_path / "out.csv")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "larger than the disk allows" in done.stdout
    assert os.listdir(tmp_path) == ["in.csv"]


def test_bad_targets(source, tmp_path):
    with pytest.raises(OutputError, match="its folder does not exist"):
        fill(source, tmp_path / "no" / "out.csv")
    with pytest.raises(OutputError, match="this is a folder"):
        fill(source, tmp_path)
    with pytest.raises(OutputError, match="unknown kind of file"):
        fill(source, tmp_path / "out.doc")
    with pytest.raises(OutputError, match="unknown kind of file"):
        fill(source, tmp_path / "out.parquet.gz")
    with pytest.raises(ValueError, match="digits"):
        fill(source, tmp_path / "out.csv", digits=0)


def test_bad_fills(source, tmp_path):
    with open_table(source) as file:
        table = file.read()
        writer = create(tmp_path / "out.csv", like=file)
        with pytest.raises(RuntimeError, match="with block"):
            writer.write(table, table.numbers)
        with writer:
            with pytest.raises(ValueError, match="filled is"):
                writer.write(table, np.zeros((2, 3)))
            with pytest.raises(ValueError, match="infinite"):
                writer.write(table, np.full((2, 2), np.inf))
            with pytest.raises(ValueError, match="extra column"):
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
        with pytest.raises(FileError, match=r"needs \w+; pip install"):
            open_table(tmp_path / name)
