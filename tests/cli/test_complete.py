import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.curves import curve, to_csv
from helpers.program import invoke

QUICK = ("--max-time", "0.3")
"""Where accuracy is not the point."""


def cells(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_missing_cells_are_imputed_and_all_others_are_written_as_they_were(completed, curved):
    done, folder = completed
    before, after = cells(curved / "table.csv"), cells(folder / "f.csv")
    truth = np.load(curved / "truth.npy")
    errors = []
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        for j, (x, y) in enumerate(zip(old, new[: len(old)], strict=True)):
            if x:
                assert x == y
            else:
                errors.append(float(y) - truth[i - 1, j - 1])
    assert np.sqrt(np.mean(np.square(errors))) < 0.15
    assert "Imputed" in done.stdout
    assert "'id', 'kind'" in done.stderr  # passed through, with a note


def test_model_report_and_intervals(completed):
    _, folder = completed
    assert (folder / "m.hirank").stat().st_size > 1000
    assert "<html" in (folder / "r.html").read_text()
    header, *rows = cells(folder / "f.csv")
    low, up, fill = (header.index(name) for name in ("b lower", "b upper", "b"))
    wide = [row for row in rows if row[low]]
    assert wide
    for row in wide:
        assert float(row[low]) <= float(row[fill]) <= float(row[up])


def test_json_is_all_there_is_on_standard_output(hirank, curved, tmp_path):
    done = hirank("complete", curved / "table.csv", "-o", tmp_path / "f.csv", "--json", *QUICK)
    facts = json.loads(done.stdout)
    assert facts["imputed"] == facts["missing"] > 0
    assert facts["error"] < 1
    assert facts["notes"]
    assert done.stderr == ""


def test_table_on_standard_input_and_output(hirank, curved, tmp_path):
    text = (curved / "table.csv").read_text()
    done = hirank("complete", "-", "-o", "-", "-q", *QUICK, stdin=text)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(text.splitlines())
    assert ",," not in done.stdout


def test_marker_of_missing_values(in_process, tmp_path):
    _truth, missing = curve()
    text = to_csv(missing).replace(",,", ",-200,").replace(",,", ",-200,")
    (tmp_path / "t.csv").write_text(text)
    done = in_process("complete", "t.csv", "-o", "f.csv", "--missing", "-200", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "-200" not in (tmp_path / "f.csv").read_text()


def test_times_may_be_dates(in_process, tmp_path):
    t = np.arange(120) / 10
    table = np.column_stack([np.sin(t), np.cos(t), np.sin(2 * t)])
    missing = table.copy()
    missing[40:45, 0] = missing[80:84, 1] = missing[20:23, 2] = np.nan
    lines = to_csv(missing, "xyz", ids=False).splitlines()
    stamped = [
        f"2024-01-{1 + i // 24:02d} {i % 24:02d}:00,{line}" for i, line in enumerate(lines[1:])
    ]
    (tmp_path / "log.csv").write_text("\n".join([f"when,{lines[0]}", *stamped]))
    done = in_process(
        "complete", "log.csv", "-o", "f.csv", "--time", "when", "--save", "m.hirank",
        "--report", "page.html", "--interval", "0.8", *QUICK, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nominal: 80" in (tmp_path / "page.html").read_text(encoding="utf-8")
    filled = np.array([[float(x) for x in row[1:4]] for row in cells(tmp_path / "f.csv")[1:]])
    assert np.abs(filled - table)[np.isnan(missing)].max() < 0.3
    again = in_process("apply", "log.csv", "-m", "m.hirank", "-o", "g.csv", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_integers_and_bounds(in_process, tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(size=90)
    table = np.column_stack([np.round(10 + 4 * size), 5 + size, size**2])
    text = ["count,x,y"] + [f"{int(a)},{b:.4f},{c:.4f}" for a, b, c in table]
    for i in range(3, 60, 5):
        text[i] = "," + text[i].split(",", 1)[1]
    (tmp_path / "t.csv").write_text("\n".join(text) + "\n")
    done = in_process(
        "complete", "t.csv", "-o", "f.csv", "--integers", "auto", "--bounds", "count=0:15", *QUICK,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    counts = [row[0] for row in cells(tmp_path / "f.csv")[1:]]
    assert all(count.lstrip("-").isdigit() for count in counts)
    assert all(0 <= int(counts[i - 1]) <= 15 for i in range(3, 60, 5))


def test_rows_in_order_may_be_a_column_named_rows(in_process, tmp_path):
    t = np.arange(80) / 10
    table = np.column_stack([t, np.sin(t), np.cos(t)])
    table[30:33, 1] = table[50:54, 2] = np.nan
    (tmp_path / "log.csv").write_text(to_csv(table, ["rows", "x", "y"], ids=False))
    for name, options in (("a.csv", ["--in-order"]), ("b.csv", ["--time", "rows"])):
        done = in_process("complete", "log.csv", "-o", name, *options, *QUICK, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert all(cell for row in cells(tmp_path / name) for cell in row)


BAD = {
    "missing file": (None, "No such file", 3),
    "empty file": (b"", "empty", 3),
    "no numeric column": (b"a,b\nx,y\nz,w\n", "numeric", 3),
    "ragged rows": (b"a,b\n1,2\n1,2,3\n", "Line 3", 3),
    "all missing": (b"a,b\n,\n,\n,\n", "missing", 5),
    "not UTF-8": (b"a,b\n1,2\n\xe4,3\n", "encoding", 3),
    "only a header": (b"a,b\n", "row", 3),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_get_a_sentence_and_an_exit_code(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    content, word, code = BAD[case]
    if content is not None:
        (tmp_path / "t.csv").write_bytes(content)
    done = invoke("complete", "t.csv", "-o", "f.csv")
    assert done.exit_code == code, done.output
    assert word in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "f.csv").exists()
    assert not [name for name in os.listdir(tmp_path) if name != "t.csv"]


def test_nothing_is_overwritten_without_force(in_process, curved, tmp_path):
    table = tmp_path / "t.csv"
    table.write_bytes((curved / "table.csv").read_bytes())
    for target in ("t.csv", "other.csv"):
        (tmp_path / "other.csv").write_text("mine")
        done = in_process("complete", "t.csv", "-o", target, cwd=tmp_path)
        assert done.returncode == 4
        assert "--force" in done.stderr
    assert (tmp_path / "other.csv").read_text() == "mine"
    done = in_process("complete", "t.csv", "-o", "t.csv", "--force", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ",," not in table.read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_full_disk(hirank, curved):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hirank", "complete", curved / "table.csv", "-o", "-", *QUICK],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 4
    assert "space" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--bounds", "nonsense"), "LOW:HIGH"),
        (("--bounds", "zz=0:1"), "zz"),
        (("--integers", "zz"), "zz"),
        (("--time", "zz"), "zz"),
        (("--max-gap", "3"), "--max-gap requires --time or --group."),
        (("--time", "a", "--in-order"), "--in-order cannot be combined with --time."),
        (("--max-time", "-1"), "--max-time must be"),
        (("--interval", "2"), "--interval must be between 0 and 1"),
    ],
)
def test_wrong_options(curved, tmp_path, options, word):
    done = invoke("complete", curved / "table.csv", "-o", tmp_path / "f.csv", *options)
    assert done.exit_code == 2, done.output
    assert word in done.output
    assert not (tmp_path / "f.csv").exists()


def test_almost_numeric_columns_are_reported(in_process, tmp_path):
    rows = [f"{i},{'error' if i == 30 else i * 2},{i % 7}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    done = in_process("complete", "t.csv", "-o", "f.csv", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "error" in done.stderr
    assert "--missing" in done.stderr
