"""Files that declare, or decompress to, more than the memory that a table may take."""

import gzip
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hirank.exceptions import FileError, ParameterError
from hirank.io import open_table
from hirank.io.memory import MemoryLimit, format_size

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")
openpyxl = pytest.importorskip("openpyxl")

TOO_LARGE = r"would take about .* of memory, but the limit is .*--max-memory"
N = 200_000


def write_npy_header(path, shape):
    with path.open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)


def write_gz(path):
    path.write_bytes(gzip.compress(b"x,y\n" + b"0,1\n" * N))


def write_parquet(path):
    pq.write_table(pa.table({"x": np.zeros(N)}), path)


def write_repeated_text(path):
    words = pa.array(["w" * 1000] * 20_000).dictionary_encode()
    pq.write_table(pa.table({"x": np.zeros(20_000), "w": words.cast(pa.string())}), path)


def write_arrow(path):
    table = pa.table({"x": np.zeros(N)})
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as sink:
        sink.write_table(table)


def write_xlsx(path):
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("t")
    for _ in range(3000):
        sheet.append([1] * 30)
    book.save(path)


FILES = {
    "t.csv.gz": write_gz,
    "t.parquet": write_parquet,
    "text.parquet": write_repeated_text,
    "t.arrow": write_arrow,
    "t.xlsx": write_xlsx,
    "t.npy": lambda path: np.save(path, np.zeros((N, 1))),
}


@pytest.mark.parametrize("name", FILES)
def test_tables_above_the_limit_are_refused_and_below_it_are_read(tmp_path, name):
    FILES[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size < 2_000_000
    header = name != "t.xlsx"

    def read(limit):
        with open_table(tmp_path / name, header=header, max_memory=limit) as file:
            return len(file.read())

    assert read("400M") >= 3000
    with pytest.raises(FileError, match=TOO_LARGE):
        read("2M")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", "t.npy"])
def test_parts_of_a_table_may_be_read_if_all_of_it_is_above_the_limit(tmp_path, name):
    FILES[name](tmp_path / name)
    with open_table(tmp_path / name, numeric=[], max_memory="30M") as file:
        assert sum(map(len, file.chunks(1000))) == N


def test_an_array_with_very_many_columns_is_refused(tmp_path):
    write_npy_header(tmp_path / "t.npy", (0, 10**10))
    with pytest.raises(FileError, match="names of the columns would take"):
        open_table(tmp_path / "t.npy")


def test_a_header_that_declares_more_than_the_file_contains_is_refused(tmp_path):
    write_npy_header(tmp_path / "t.npy", (10**12, 3))
    with pytest.raises(FileError, match="declares 3000000000000 numbers, more than the file"):
        open_table(tmp_path / "t.npy")


def test_a_header_of_an_array_that_does_not_end_is_refused(tmp_path):
    with (tmp_path / "t.npy").open("wb") as stream:
        stream.write(b"\x93NUMPY\x02\x00" + (2**32 - 1).to_bytes(4, "little"))
        stream.truncate(2**33)  # sparse
    with pytest.raises(FileError, match="damaged"):
        open_table(tmp_path / "t.npy")


def test_a_stray_cell_of_an_excel_sheet_is_refused(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["A2"] = "x", 1.5
    book.active["XFD1048576"] = 1
    book.save(tmp_path / "t.xlsx")

    with pytest.raises(FileError, match="down to row 1048576 and column 16384, would take"):
        open_table(tmp_path / "t.xlsx", max_memory="16G")


def test_a_sheet_that_decompresses_to_very_much_is_refused(tmp_path):
    write_xlsx(tmp_path / "t.xlsx")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/padding.xml", b" " * 30_000_000)
    with pytest.raises(FileError, match=TOO_LARGE):
        open_table(tmp_path / "t.xlsx", max_memory="200M")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="requires Linux")
@pytest.mark.parametrize("name", ["t.csv.gz", "line.csv.gz", "t.parquet"])
def test_a_bomb_takes_little_memory(tmp_path, name):
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(pa.table({"x": np.zeros(30_000_000)}), path, row_group_size=30_000_000)
    else:
        with gzip.open(path, "wb", compresslevel=1) as stream:
            for _ in range(300):
                stream.write((b"0,1\n" if name == "t.csv.gz" else b"0000") * (1 << 18))
    program = (
        "import pyarrow.parquet, re, sys; from hirank.io import open_table\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak()\n"
        "try:\n    open_table(sys.argv[1], header=False, max_memory='100M').read()\n"
        "except Exception as error:\n    print(error, file=sys.stderr)\n"
        "print(peak() - before)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )

    assert "limit" in done.stderr or "longer than 64 MiB" in done.stderr
    # KiB. Unpacked the files have 300 and 240 MB; 123, 70 and 1 MB were measured.
    assert int(done.stdout) < 160_000


@pytest.mark.parametrize("ending", [b"\n1,2\n", b""])
@pytest.mark.parametrize("quote", [b"", b'"'])
def test_a_first_row_that_is_too_long_is_refused(tmp_path, quote, ending):
    (tmp_path / "t.csv").write_bytes(quote + b"name," * 300_000 + quote + ending)
    with pytest.raises(FileError, match=r"first row is longer than 1 MiB|is opened and never"):
        open_table(tmp_path / "t.csv")


def test_a_line_without_end_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"x,y\n1,2\n3," + b"0" * (70 << 20))
    with (
        open_table(tmp_path / "t.csv") as file,
        pytest.raises(FileError, match="Line 3 is longer than 64 MiB"),
    ):
        file.read()


@pytest.mark.parametrize(
    ("text", "size"), [("4G", 4 << 30), ("1.5k", 1536), ("500 MB", 500 << 20), (10, 10)]
)
def test_sizes(text, size):
    assert MemoryLimit.parse(text).size == size
    assert MemoryLimit.parse(format_size(size)).size == pytest.approx(size, rel=0.05)


@pytest.mark.parametrize("text", ["", "0", "-1G", "4X", "much"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(ParameterError, match="max_memory must be a size such as 4G"):
        MemoryLimit.parse(text)


def test_the_default_is_below_the_memory_of_the_machine():
    assert 1 << 20 < MemoryLimit().size < 1 << 50
