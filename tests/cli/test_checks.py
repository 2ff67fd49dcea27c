"""What is asked before the work begins, and what is told after it; in this process, for speed."""

import gzip
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from hirank import OnlineKFMC
from hirank.cli.app import app
from hirank.cli.apply import about_rows
from hirank.cli.dates import times_of
from hirank.cli.errors import Failure
from hirank.cli.fit_table import markers_of, read
from hirank.cli.intervals import BlankRows
from hirank.cli.output_checks import check_targets
from hirank.cli.reporter import Told, _status
from hirank.io import open_table
from hirank.optim.trace import TrialFinished


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("time,a,b\n1,2,3\n2,4,5\n3,5,9\n")
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_only_the_filled_table_may_take_the_place_of_the_input(table, tmp_path):
    check_targets(str(table), table=table, force=True)
    with pytest.raises(Failure, match="overwrite an input"):
        check_targets(str(table), table, force=True)  # a model or a page
    with pytest.raises(Failure, match="input itself"):
        check_targets(str(table), table=table, force=False)


def test_the_filled_table_never_takes_the_place_of_the_model(table, tmp_path):
    model = tmp_path / "m.csv"
    model.touch()
    with pytest.raises(Failure, match="overwrite an input"):
        check_targets(str(table), table=model, keep=(model,), force=True)


@pytest.mark.parametrize("options", [(), ("--interval", "0.9")])
def test_a_table_without_holes_is_copied_without_learning(table, tmp_path, options, monkeypatch):
    monkeypatch.setattr("hirank.KFMC.fit_transform", None)
    done = run("complete", table, "-o", tmp_path / "f.csv", *options)
    assert done.exit_code == 0, done.output
    assert "No cell is missing" in done.output
    lines = (tmp_path / "f.csv").read_text().splitlines()
    added = ",time lower,time upper,a lower,a upper,b lower,b upper" if options else ""
    assert lines[:2] == ["time,a,b" + added, "1,2,3" + ("," * 6 if options else "")]


@pytest.mark.parametrize(
    "options",
    [("--seed", "-1"), ("--digits", "0"), ("--max-gap", "0", "--time", "a"), ("--time", "rows")],
)
def test_wrong_options_end_before_the_work(table, tmp_path, options, monkeypatch):
    monkeypatch.setattr("hirank.KFMC.fit_transform", None)
    done = run("complete", table, "-o", tmp_path / "f.csv", "--save", tmp_path / "m", *options)
    assert done.exit_code == 2, done.output
    assert not (tmp_path / "f.csv").exists()


def test_columns_for_intervals_that_are_there_already(tmp_path):
    (tmp_path / "t.csv").write_text("a,a lower\n1,2\n,3\n")
    done = run("complete", tmp_path / "t.csv", "-o", tmp_path / "f.csv", "--interval", "0.9")
    assert done.exit_code == 3
    assert "'a lower'" in done.output


def test_plot_of_an_unknown_kind_is_refused_at_once(table, tmp_path):
    done = run("compare", table, "--plot", tmp_path / "p.xyz")
    assert done.exit_code == 2
    assert ".png" in done.output


def test_rows_without_values_are_told_once_and_by_line(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n,\n3,4\n,\n")
    told = Told()
    blank = BlankRows(told)
    for piece in open_table(path, numeric=["a", "b"]).chunks(2):
        with told.warnings():
            warnings.warn("1 sample(s) have no observed entry to go by (rows 1).", stacklevel=1)
        blank.see(piece, np.asarray(piece.numbers))
    blank.tell()
    assert told.notes == ["2 row(s) have no value at all and got column means: line 3, 5."]


def test_warnings_speak_of_options():
    told = Told(quiet=True)
    with told.warnings():
        warnings.warn("order='day': 1 rows have no time. Or give order='time'.", stacklevel=1)
    assert told.notes == ["--time day: 1 rows have no time. Or give --time rows."]


def test_apply_with_models_of_streams(table, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) * [1, 2, 3] + rng.normal(size=(60, 3)) / 4
    model, young = OnlineKFMC(n_start=50, random_state=0), OnlineKFMC(random_state=0)
    for one, name in ((model, "m.hirank"), (young, "young.hirank")):
        one.partial_fit(X).save(tmp_path / name)
    target = ("-o", tmp_path / "f.csv")
    done = run("apply", table, "-m", tmp_path / "m.hirank", *target, "--interval", "0.9")
    assert done.exit_code == 3
    assert "leave out --interval" in done.output
    done = run("apply", table, "-m", tmp_path / "young.hirank", *target)
    assert done.exit_code == 3
    assert "too few rows" in done.output
    assert not (tmp_path / "f.csv").exists()


def test_times_may_be_numbers_in_a_column_of_text():
    assert times_of(["1000", "1002.5"], "id").tolist() == [1000, 1002.5]
    assert np.diff(times_of(["2024-01-01", "2024-01-02"], "day")).tolist() == [86400]


def test_values_far_from_all_others_are_told(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{-200 if i % 9 == 0 else x:.2f},{y:.2f}"
        for i, (x, y) in enumerate(rng.normal(size=(60, 2)))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]))
    told = Told(quiet=True)
    read(str(tmp_path / "t.csv"), told, missing=None, ids=None)
    assert "-200 in 7 cells of 'a'" in told.notes[0]
    assert "'b'" not in told.notes[0]
    silent = Told(quiet=True)
    read(str(tmp_path / "t.csv"), silent, missing=["-200"], ids=None)
    assert not silent.notes


def test_rows_left_are_guessed_by_the_first_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1.25,2.50\n" * 30_000)
    assert about_rows(open_table(path)) == pytest.approx(30_000, rel=0.01)
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(path.read_bytes())
    assert about_rows(open_table(tmp_path / "t.csv.gz")) is None


def test_the_line_of_a_fit_has_stage_error_and_time_left():
    event = TrialFinished("kernelized", "kernelized (rbf)", 0.2, 9.0)
    assert _status(event, 0.15, None) == "kernelized (rbf), best error 0.150, about 11 s left"
    assert _status(event, 0.15, 10.0).endswith("about 1 s left")


def test_what_stood_for_missing_is_kept_with_the_model(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(size=40)
    rows = [f"{-200 if i % 6 == 0 else x:.3f},{2 * x:.3f},{3 * x:.3f}" for i, x in enumerate(size)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    model = tmp_path / "m.hirank"
    done = run("fit", tmp_path / "t.csv", "-m", model, "--missing", "-200", "--max-time", "1")
    assert done.exit_code == 0, done.output
    assert markers_of(model) == ["-200"]
    done = run("apply", tmp_path / "t.csv", "-m", model, "-o", tmp_path / "f.csv")
    assert done.exit_code == 0, done.output
    assert "-200" in done.output
    assert "-200" not in (tmp_path / "f.csv").read_text()
