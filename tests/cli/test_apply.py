import csv
import json

import numpy as np
from helpers.curves import curve, to_csv


def read(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_columns_are_matched_by_name(fitted, in_process, tmp_path):
    truth, missing = curve(40, seed=5)
    (tmp_path / "new.csv").write_text(to_csv(missing[:, [2, 0, 3, 1]], "cadb"))
    done = in_process(
        "apply", "new.csv", "-m", fitted / "model.hirank", "-o", "f.csv", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    imputed = np.array([[float(x) for x in row[1:5]] for row in read(tmp_path / "f.csv")[1:]])
    back = imputed[:, [1, 3, 0, 2]]
    error = (back - truth)[np.isnan(missing)]
    assert np.sqrt(np.mean(error**2)) < 0.15


def test_the_number_of_rows_at_a_time_makes_no_difference(fitted, in_process, tmp_path):
    _, missing = curve(50, seed=6)
    (tmp_path / "new.csv").write_text(to_csv(missing))
    for rows in (7, 1000):
        done = in_process(
            "apply", "new.csv", "-m", fitted / "model.hirank", "-o", f"{rows}.csv",
            "--rows", rows, "--interval", "0.8", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "7.csv").read_bytes() == (tmp_path / "1000.csv").read_bytes()


def test_a_column_that_the_table_lacks_is_missing(fitted, in_process, tmp_path):
    truth, missing = curve(40, seed=5)
    (tmp_path / "new.csv").write_text(to_csv(missing, "abxd"))

    done = in_process(
        "apply", "new.csv", "-m", fitted / "model.hirank", "-o", "f.csv", cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("input lacks, which count as missing: c.") == 1
    before, after = read(tmp_path / "new.csv"), read(tmp_path / "f.csv")
    assert after[0] == before[0]
    assert [row[3] for row in after] == [row[3] for row in before]  # x, not of the model
    imputed = np.array([[float(row[j]) for j in (1, 2, 4)] for row in after[1:]])
    error = (imputed - truth[:, [0, 1, 3]])[np.isnan(missing[:, [0, 1, 3]])]
    assert np.sqrt(np.mean(error**2)) < 0.3  # with all four columns 0.15


def test_a_table_without_any_column_of_the_model_is_an_error(fitted, in_process, tmp_path):
    (tmp_path / "new.csv").write_text(to_csv(curve(20)[1], "klmn"))

    done = in_process(
        "apply", "new.csv", "-m", fitted / "model.hirank", "-o", "f.csv", cwd=tmp_path
    )

    assert done.returncode == 3
    assert "None of the columns of the model is in the input" in done.stderr
    assert not (tmp_path / "f.csv").exists()


def test_words_in_numeric_columns_are_reported_with_their_line(fitted, in_process, tmp_path):
    (tmp_path / "new.csv").write_text("a,b,c,d\n1,2,3,4\n1,oops,3,4\n")
    done = in_process(
        "apply", "new.csv", "-m", fitted / "model.hirank", "-o", "f.csv", cwd=tmp_path
    )
    assert done.returncode == 3
    assert "Line 3" in done.stderr
    assert "oops" in done.stderr
    assert not (tmp_path / "f.csv").exists()


def test_the_model_is_never_changed(fitted, in_process, tmp_path):
    before = (fitted / "model.hirank").read_bytes()
    done = in_process(
        "apply",
        fitted / "table.csv",
        "-m",
        fitted / "model.hirank",
        "-o",
        tmp_path / "f.csv",
        "--json",
    )
    assert json.loads(done.stdout)["rows_per_second"] > 0
    assert (fitted / "model.hirank").read_bytes() == before


def test_a_file_that_is_not_a_model(in_process, fitted, tmp_path):
    (tmp_path / "m.hirank").write_text("no model")
    for model in ("m.hirank", "none.hirank"):
        done = in_process("apply", fitted / "table.csv", "-m", model, "-o", "f.csv", cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert model in done.stderr
        assert "Traceback" not in done.stderr


def test_from_csv_to_parquet(fitted, in_process, tmp_path):
    import pyarrow.parquet as pq

    done = in_process(
        "apply", fitted / "table.csv", "-m", fitted / "model.hirank", "-o", tmp_path / "f.parquet"
    )
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "f.parquet")
    assert table.column_names == ["id", "a", "b", "c", "d", "kind"]
    assert not any(column.null_count for column in table.columns)
