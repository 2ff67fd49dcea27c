"""Checks before the work begins, and what is printed; in this process, for speed."""

import gzip
import warnings

import numpy as np
import pytest
from helpers.estimators import fast_online
from helpers.program import invoke

from hirank import OnlineImputer, OnlineKFMC
from hirank.cli.apply import estimate_rows
from hirank.cli.errors import ExitCode, explain_error
from hirank.cli.fit_table import make_imputer, read_table
from hirank.cli.models import load_markers, set_threads
from hirank.cli.options import FitOptions, LearnOptions
from hirank.cli.output_checks import check_outputs
from hirank.cli.reporter import Reporter
from hirank.exceptions import (
    EmptyRowsWarning,
    NoModelWarning,
    OutputError,
    OutputExistsError,
    ParameterError,
    TimeColumnWarning,
    WarmupWarning,
)
from hirank.io import open_table


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("time,a,b\n1,2,3\n2,4,5\n3,5,9\n")
    return path


def test_only_the_imputed_table_may_replace_the_input(table):
    check_outputs(source=str(table), table=table, force=True)
    with pytest.raises(OutputError, match="This is an input"):
        check_outputs(table, source=str(table), force=True)  # a model or a report
    with pytest.raises(OutputExistsError, match=r"already exists\. Pass --force to overwrite it"):
        check_outputs(source=str(table), table=table, force=False)


def test_the_imputed_table_never_replaces_the_model(table, tmp_path):
    model = tmp_path / "m.csv"
    model.touch()
    with pytest.raises(OutputError, match="This is an input"):
        check_outputs(source=str(table), table=model, protected=(model,), force=True)


def test_outputs_must_have_different_names_in_folders_that_exist(table, tmp_path):
    with pytest.raises(OutputError, match="Two outputs"):
        check_outputs(tmp_path / "a", tmp_path / "a", source=str(table), force=True)
    with pytest.raises(OutputError, match="folder does not exist"):
        check_outputs(tmp_path / "none" / "a", source=str(table), force=True)
    with pytest.raises(OutputError, match="This is a folder"):
        check_outputs(tmp_path, source=str(table), force=True)


@pytest.mark.parametrize("options", [(), ("--interval", "0.9")])
def test_a_complete_table_is_copied_without_a_fit(table, tmp_path, options, monkeypatch):
    monkeypatch.setattr("hirank.Imputer.fit_transform", None)
    done = invoke("complete", table, "-o", tmp_path / "f.csv", *options)
    assert done.exit_code == 0, done.output
    assert "No value is missing" in done.output
    lines = (tmp_path / "f.csv").read_text().splitlines()
    added = ",time lower,time upper,a lower,a upper,b lower,b upper" if options else ""
    assert lines[:2] == ["time,a,b" + added, "1,2,3" + ("," * 6 if options else "")]


@pytest.mark.parametrize(
    "options",
    [("--seed", "-1"), ("--digits", "0"), ("--max-gap", "0", "--time", "a"), ("--time", "rows")],
)
def test_wrong_options_end_before_the_work(table, tmp_path, options, monkeypatch):
    monkeypatch.setattr("hirank.Imputer.fit_transform", None)
    done = invoke("complete", table, "-o", tmp_path / "f.csv", "--save", tmp_path / "m", *options)
    assert done.exit_code == 2, done.output
    assert not (tmp_path / "f.csv").exists()


def test_columns_of_intervals_must_not_exist(tmp_path):
    (tmp_path / "t.csv").write_text("a,a lower\n1,2\n,3\n")
    done = invoke("complete", tmp_path / "t.csv", "-o", tmp_path / "f.csv", "--interval", "0.9")
    assert done.exit_code == 3
    assert "'a lower'" in done.output


def test_plots_of_unknown_formats_are_rejected_at_once(table, tmp_path):
    done = invoke("compare", table, "--plot", tmp_path / "p.xyz")
    assert done.exit_code == 2
    assert ".png" in done.output


def test_rows_without_values_are_reported_once_by_their_lines(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n,\n3,4\n,\n")
    reporter = Reporter()

    with reporter.warnings():
        for part in open_table(path, numeric=["a", "b"]).chunks(2):
            reporter.table = part
            warnings.warn(EmptyRowsWarning((1,)), stacklevel=1)

    assert reporter.notes == [
        "2 rows have no values and were imputed with column means (lines 3, 5)."
    ]
    assert capsys.readouterr().err == f"note: {reporter.notes[0]}\n"


def test_warnings_become_notes_by_their_class():
    reporter = Reporter(quiet=True)
    with reporter.warnings():
        warnings.warn(TimeColumnWarning("day", "1 row has no time"), stacklevel=1)
        warnings.warn(NoModelWarning((("Gaussian", "overflow"),)), stacklevel=1)
    assert reporter.notes[0] == str(TimeColumnWarning("day", "1 row has no time"))
    assert "scale" not in reporter.notes[1]  # the program has no such option


def test_a_stream_reports_each_class_of_warnings_once_and_counts_rows_itself():
    reporter = Reporter(quiet=True, events=True)
    with reporter.warnings():
        for count in (1, 2):
            warnings.warn(WarmupWarning(count), stacklevel=1)
            warnings.warn(f"other {count}", stacklevel=1)
    assert reporter.notes == ["other 1"]


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (ParameterError("max_gap", "requires {time}.", "time"), "--max-gap requires --time.", 2),
        (ParameterError("random_state", "must be 0."), "--seed must be 0.", 2),
        (OutputExistsError("f"), "f already exists. Pass --force to overwrite it.", 4),
        (FileNotFoundError(2, "No", "f"), "f: No such file. Check the name and the folder.", 3),
        (KeyboardInterrupt(), "Interrupted. No output was left incomplete.", 130),
    ],
)
def test_errors_are_explained_by_their_class(error, message, code):
    assert explain_error(error) == (message, ExitCode(code))


def test_other_errors_are_defects():
    assert explain_error(ValueError("x")) is None


def test_apply_with_models_of_streams(table, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) * [1, 2, 3] + rng.normal(size=(60, 3)) / 4
    model, young = fast_online(OnlineImputer), OnlineImputer(random_state=0, time=None)
    for one, name in ((model, "m.hirank"), (young, "young.hirank")):
        one.partial_fit(X).save(tmp_path / name)
    target = ("-o", tmp_path / "f.csv")
    done = invoke("apply", table, "-m", tmp_path / "m.hirank", *target, "--interval", "0.9")
    assert done.exit_code == 3
    assert "Omit --interval" in done.output
    done = invoke("apply", table, "-m", tmp_path / "young.hirank", *target)
    assert done.exit_code == 3
    assert "too few rows" in done.output
    assert not (tmp_path / "f.csv").exists()


def test_values_far_from_all_others_are_reported(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{-200 if i % 9 == 0 else x:.2f},{y:.2f}"
        for i, (x, y) in enumerate(rng.normal(size=(60, 2)))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]))
    reporter, silent = Reporter(quiet=True), Reporter(quiet=True)
    path = str(tmp_path / "t.csv")

    read_table(LearnOptions(table=path), reporter)
    read_table(LearnOptions(table=path, missing=["-200"]), silent)

    assert "-200 in 7 cells of 'a'" in reporter.notes[0]
    assert "'b'" not in reporter.notes[0]
    assert not silent.notes


def test_the_number_of_rows_is_estimated_from_the_first_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1.25,2.50\n" * 30_000)
    assert estimate_rows(open_table(path)) == pytest.approx(30_000, rel=0.01)
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(path.read_bytes())
    assert estimate_rows(open_table(tmp_path / "t.csv.gz")) is None


def test_markers_of_missing_values_are_saved_with_the_model(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(size=40)
    rows = [f"{-200 if i % 6 == 0 else x:.3f},{2 * x:.3f},{3 * x:.3f}" for i, x in enumerate(size)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    model = tmp_path / "m.hirank"
    done = invoke("fit", tmp_path / "t.csv", "-m", model, "--missing", "-200", "--max-time", "1")
    assert done.exit_code == 0, done.output
    assert load_markers(model) == ["-200"]
    done = invoke("apply", tmp_path / "t.csv", "-m", model, "-o", tmp_path / "f.csv")
    assert done.exit_code == 0, done.output
    assert "-200" in done.output
    assert "-200" not in (tmp_path / "f.csv").read_text()


def test_commands_use_all_processors_unless_jobs_are_set(table, monkeypatch):
    given = read_table(LearnOptions(table=str(table)), Reporter())

    def jobs(**options):
        return make_imputer(FitOptions(table=str(table), **options), given.table).n_jobs

    assert jobs() == -1
    assert jobs(jobs=2) == 2


def test_a_saved_model_uses_as_many_threads_as_asked_for():
    stream, paper = fast_online(OnlineImputer), fast_online(OnlineKFMC)

    set_threads(stream, -1)
    set_threads(paper, -1)  # has one thread

    assert stream.n_jobs == -1
    assert not hasattr(paper, "n_jobs")


def test_the_completed_table_is_written_before_the_report(in_process, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.3f},{2 * x:.3f},{'' if i % 5 == 0 else x**2}"
        for i, x in enumerate(rng.normal(size=60))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    there = []

    def write_report(path, model, *args, **options):
        there.append((tmp_path / "f.csv").exists())

    monkeypatch.setattr("hirank.report.write_report", write_report)
    monkeypatch.setattr(
        "hirank.models.stacking.Stack.complete_each", None
    )  # rows are not imputed again
    in_process(
        "complete", "t.csv", "-o", "f.csv", "--report", "r.html", "--max-time", "1", cwd=tmp_path
    )

    assert there == [True]
