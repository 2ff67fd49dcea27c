"""What complete says about the columns that it read, and where it writes without --output."""

import gzip

import pytest

from hirank.cli.output_checks import output_for

QUICK = ("--max-time", "1")


def german_table():
    rows = [f"{i};{1000 + i / 8:.2f}".replace(".", ",") for i in range(40)]
    rows = [
        f"{row.replace(';1', ';1.')} €;{'' if i % 9 == 4 else f'{i % 7},5 kg'}"
        for i, row in enumerate(rows)
    ]
    return "Tag;Preis;Menge\n" + "\n".join(rows) + "\n"


def test_units_and_thousands_are_read_written_and_reported(in_process, tmp_path):
    (tmp_path / "tabelle.csv").write_text(german_table(), encoding="utf-8")

    done = in_process("complete", "tabelle.csv", *QUICK, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "1.000,00 € in 'Preis' is 1000" in " ".join(done.stderr.split())
    written = (tmp_path / "tabelle.filled.csv").read_text(encoding="utf-8").splitlines()
    given = german_table().splitlines()
    for before, after in zip(given, written, strict=True):
        assert after.startswith(before)
        assert before == after or after.endswith(" kg")
    assert sum(before != after for before, after in zip(given, written, strict=True)) == 4


def test_columns_with_one_name_are_numbered_and_the_header_stays(in_process, tmp_path):
    rows = [f"{i},{2 * i},{'' if i == 5 else 3 * i}" for i in range(30)]
    (tmp_path / "t.csv").write_text("x,x,x.2\n" + "\n".join(rows) + "\n")

    done = in_process("complete", "t.csv", *QUICK, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "'x.3'" in done.stderr
    assert (tmp_path / "t.filled.csv").read_text().startswith("x,x,x.2\n0,0,0\n")


def test_values_far_from_all_others_come_with_the_option_that_marks_them(in_process, tmp_path):
    rows = [f"{i},{-999 if i % 8 == 3 else i * 2},{i % 7}" for i in range(60)]
    (tmp_path / "t.csv").write_text("a,b,c\n" + "\n".join(rows) + "\n")

    done = in_process("complete", "t.csv", *QUICK, cwd=tmp_path)
    again = in_process("complete", "t.csv", "--missing=-999", "--force", *QUICK, cwd=tmp_path)

    assert "pass --missing=-999." in " ".join(done.stderr.split())
    assert again.returncode == 0, again.stderr
    assert "-999" not in (tmp_path / "t.filled.csv").read_text()


def test_imputed_values_look_like_the_observed_ones_unless_they_are_to_be_raw(in_process, tmp_path):
    rows = [f"{i},{'' if i % 6 == 2 else i // 3},{0.25 * (i % 8)}" for i in range(60)]
    (tmp_path / "t.csv").write_text("a,n,x\n" + "\n".join(rows) + "\n")

    for output, options in {"plain.csv": (), "raw.csv": ("--raw",)}.items():
        in_process("complete", "t.csv", "-o", output, *options, *QUICK, cwd=tmp_path)

    plain, raw = (
        [line.split(",")[1] for line in (tmp_path / name).read_text().splitlines()[1:]]
        for name in ("plain.csv", "raw.csv")
    )
    assert all(cell.isdigit() for cell in plain)
    assert not all(cell.isdigit() for cell in raw)


def test_an_output_that_exists_is_not_overwritten(in_process, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,\n")
    (tmp_path / "t.filled.csv").write_text("mine")
    done = in_process("complete", "t.csv", cwd=tmp_path)
    assert done.returncode == 4
    assert (tmp_path / "t.filled.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("data.csv", "data.filled.csv"),
        ("in.d/data.csv.gz", "in.d/data.filled.csv.gz"),
        ("table", "table.filled"),
        ("v1.2.parquet", "v1.2.filled.parquet"),
        ("-", "-"),
    ],
)
def test_the_output_is_beside_the_input(source, output):
    assert output_for(source) == output


def test_apply_has_the_same_default(in_process, tmp_path):
    rows = [f"{i},{2 * i}" for i in range(30)]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    with gzip.open(tmp_path / "new.csv.gz", "wt") as file:
        file.write("a,b\n3,\n")
    in_process("fit", "t.csv", "-m", "m.hirank", *QUICK, cwd=tmp_path)

    done = in_process("apply", "-m", "m.hirank", "new.csv.gz", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    with gzip.open(tmp_path / "new.filled.csv.gz", "rt") as file:
        assert not file.read().endswith(",\n")
