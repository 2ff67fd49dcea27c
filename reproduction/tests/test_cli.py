"""The program: a small experiment in detail, and each real one with --quick."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from reproduction import config
from reproduction.__main__ import EXPERIMENTS, main
from reproduction.cells import Cell, CellResult, Method
from reproduction.console import Console
from reproduction.runner import Progress
from reproduction.tests.conftest import ROOT
from reproduction.tidy_table import read_table, write_table

PARTS = 4
"""The real experiments are run in so many processes: starting one takes seconds."""
CONFIG = """
title = "Two methods on one surface"
shows = "nothing in the paper"
task = "completion"
data = ["one curved surface"]
rates = [0.2]
seeds = 2

[[method]]
name = "LRF"
estimator = "LRF"
grid = { rank = [3, 6] }

[[method]]
name = "KFMC"
estimator = "KFMC"
source = "hirank"
settings = { n_components = 20, max_iter = 20 }

[quick]
seeds = 1

[[figure]]
kind = "lines"
measure = "relative error"
x = "rate"
panels = "data"

[[claim]]
statement = "Dictionaries are better than low rank."
kind = "lower"
measure = "relative error"
methods = ["KFMC"]
than = ["LRF"]

[[expected]]
method = "LRF"
data = "one curved surface"
rate = 0.2
measure = "relative error"
from = 0.5
to = 0.6
"""


def make_folder(folder):
    (folder / "experiments" / "small").mkdir(parents=True)
    (folder / "experiments" / "small" / "config.toml").write_text(CONFIG)
    return folder


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path)


@pytest.fixture
def experiments(folder):
    return ("--experiments", str(folder / "experiments"))


@pytest.fixture(scope="module")
def quick(reproduction, tmp_path_factory):
    """A quick run: the process, and the folder."""
    folder = make_folder(tmp_path_factory.mktemp("quick"))
    options = ("--experiments", folder / "experiments", "--quick", "--json", "--jobs", 1)
    return reproduction("small", *options), folder


def edit(folder, old, new):
    path = folder / "experiments" / "small" / "config.toml"
    path.write_text(path.read_text().replace(old, new, 1))


def without_times(path):
    return [
        {key: value for key, value in row.items() if "seconds" not in key}
        for row in read_table(path)
        if "seconds" not in row["measure"]
    ]


def start(*arguments, **options):
    command = [sys.executable, "-m", "reproduction", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, **options)


def wait_for_runs(process, cells):
    while not cells.exists() or len(cells.read_bytes().splitlines()) < 3:
        assert process.poll() is None
        time.sleep(0.01)


@pytest.mark.parametrize("option", [[], ["--list"], ["small", "--list"]])
def test_experiments_are_listed(experiments, option, capsys):
    assert main([*option, *experiments]) == 0
    assert "small  Two methods on one surface" in capsys.readouterr().out


def test_an_unknown_experiment_is_an_error(experiments, capsys):
    assert main(["large", *experiments]) == 2
    assert "There is no experiment 'large'" in capsys.readouterr().err


def test_without_a_terminal_progress_is_printed_now_and_then(capsys):
    show = Console().progress("small", interval=0)
    cell = Cell("completion", "mocap", "random", 0.1, 0, Method("a", "KFMC"))

    show(Progress(cell, CellResult(cell.key, (), 1.0, 1.0), 3, 8, 130.0))
    show(Progress(cell, CellResult(cell.key, (), 1.0, 1.0), 8, 8, 0.0))

    assert capsys.readouterr().err == (
        "small: 3 of 8 runs, about 2 min left\nsmall: 8 of 8 runs, less than a minute left\n"
    )


def test_a_quick_run_writes_table_figures_and_page(quick):
    done, folder = quick
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    rows = read_table(folder / "build" / "tables" / "small.parquet")
    assert {row["method"] for row in rows} == {"LRF", "KFMC"}
    assert {row["rate"] for row in rows} == {0.2}
    assert all(row["cores"] and row["numpy"] and row["when"] for row in rows)
    figures = sorted(Path(path).suffix for path in result["experiments"]["small"]["figures"])
    assert figures == [".png", ".svg"]
    page = (folder / "build" / "README.md").read_text()
    assert "Dictionaries are better than low rank." in page
    assert "(figures/small-1.png)" in page
    assert result["experiments"]["small"]["outside"] == []  # bands are for full runs


def test_a_killed_run_continues_where_it_stopped(reproduction, experiments, folder):
    """The table is that of an undisturbed run."""
    whole, cut = folder / "whole", folder / "cut"
    done = reproduction("small", "-o", whole, *experiments)
    assert done.returncode == 0, done.stderr
    assert "LRF, one curved surface" in done.stderr  # outside of its expected band
    assert "expected 0.5 to 0.6" in done.stderr
    cells = cut / "cells" / "small.jsonl"
    running = start("small", "-o", cut, "--jobs", 1, *experiments, stderr=subprocess.DEVNULL)
    wait_for_runs(running, cells)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    done = reproduction("small", "-o", cut, "--jobs", 1, *experiments)

    assert done.returncode == 0, done.stderr
    assert not cells.exists()  # its runs are in the table
    one, other = (without_times(path / "tables" / "small.parquet") for path in (cut, whole))
    assert one == other
    one, other = ((path / "figures" / "small-1.svg").read_bytes() for path in (cut, whole))
    assert one == other


def test_ctrl_c_ends_all_processes_and_states_how_to_continue(experiments, folder):
    """A terminal sends the signal to all processes."""
    edit(folder, "seeds = 2", "seeds = 100")
    running = start(
        "small", "-o", folder / "out", "--jobs", 2, *experiments,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    wait_for_runs(running, folder / "out" / "cells" / "small.jsonl")

    os.killpg(running.pid, signal.SIGINT)

    printed = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert printed.endswith("Finished runs are saved; the same command continues.\n")
    assert "Traceback" not in printed
    deadline = time.monotonic() + 20
    with suppress(ProcessLookupError):  # raised when no process of the group is left
        while time.monotonic() < deadline:
            os.killpg(running.pid, 0)
            time.sleep(0.05)
    assert time.monotonic() < deadline


def test_runs_of_other_code_are_noted_and_run_again_if_asked_for(quick, capsys):
    _, folder = quick
    table = folder / "build" / "tables" / "small.parquet"
    rows = read_table(table)
    write_table(table, [row | {"code": "other", "when": "before"} for row in rows])
    options = ["small", "--quick", "--jobs=1", "--experiments", str(folder / "experiments")]

    assert main(options) == 0
    assert "3 runs of 3 were measured with other code. Pass --rerun" in capsys.readouterr().err
    assert {row["code"] for row in read_table(table)} == {"other"}
    assert main([*options, "--method=KFMC", "--rerun=stale"]) == 0
    assert {row["method"] for row in read_table(table) if row["code"] == "other"} == {"LRF"}
    assert main([*options, "--rerun=stale"]) == 0

    again = read_table(table)
    assert [row["code"] for row in again] == [row["code"] for row in rows]
    assert without_times(table) == [
        {key: value for key, value in row.items() if "seconds" not in key}
        for row in rows
        if "seconds" not in row["measure"]
    ]
    assert not (folder / "build" / "cells" / "small.jsonl").exists()


def test_a_run_that_is_limited_adds_to_the_table(experiments, folder, capsys):
    options = ["small", "-o", str(folder / "out"), "--jobs=1", *experiments]
    table = folder / "out" / "tables" / "small.parquet"

    assert main([*options, "--seeds=1", "--method=LRF"]) == 0
    assert {(row["method"], row["seed"]) for row in read_table(table)} == {("LRF", 0)}
    assert main([*options, "--max-cpu=1e-9"]) == 0
    assert "small: stopped at --max-cpu, " in capsys.readouterr().err
    assert main([*options, "--max-cpu=1e-9", "--min-trials=1"]) == 0
    ran = {(row["method"], row["seed"]) for row in read_table(table)}
    assert ran == {("LRF", 0), ("KFMC", 0)}
    assert main(options) == 0

    assert len({row["cell"] for row in read_table(table)}) == 2 + 1 + 2
    assert main([*options, "--search=every trial"]) == 0
    assert len({row["cell"] for row in read_table(table)}) == 2 * (2 + 1)


def test_a_summary_counts_the_lowest_errors_without_a_run(experiments, folder, capsys):
    edit(folder, 'than = ["LRF"]', 'than = ["LRF"]\ncount_cells = true')
    options = ["-o", str(folder / "out"), *experiments]
    assert main(["small", "--jobs=1", "--quiet", *options]) == 0

    assert main(["summary", *options]) == 0

    printed = capsys.readouterr().out
    assert "| small | nothing in the paper | relative error | LRF | **1 of 1** |" in printed
    assert "| small | nothing in the paper | 2 trials (settings searched in 1) | 5 |" in printed
    assert "**1 of 1**" in (folder / "out" / "README.md").read_text()


def test_an_unknown_method_is_an_error(experiments, capsys):
    assert main(["small", "--method=VMC", *experiments]) == 2
    assert "has no method 'VMC'; expected one of LRF, KFMC." in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--max-cpu=0", "--max-cpu=nan", "--min-trials=0"])
def test_limits_must_be_positive(option, capsys):
    with pytest.raises(SystemExit):
        main(["small", option])
    assert "must be" in capsys.readouterr().err


def test_fewer_seeds_can_be_run_and_failures_are_noted(experiments, folder, capsys):
    edit(folder, "rank = [3, 6]", "rank = [3, -1]")

    code = main(
        ["small", "-o", str(folder / "out"), "--seeds=1", "--jobs=1", "--json", *experiments]
    )

    assert code == 0
    assert {row["seed"] for row in read_table(folder / "out" / "tables" / "small.parquet")} == {0}
    assert "1 trial (settings searched in each)." in (folder / "out" / "README.md").read_text()
    result = json.loads(capsys.readouterr().out)
    assert result["page"] == str(folder / "out" / "README.md")
    assert result["experiments"]["small"]["cells"] == 3
    (note,) = (note for note in result["notes"] if "failed" in note)
    assert note.startswith("small: failed: LRF: 1 of 2 runs (")


def test_an_experiment_without_its_data_is_skipped(reproduction, experiments, folder):
    edit(folder, "one curved surface", "mocap")
    done = reproduction("all", "--quick", "--data", folder, *experiments)
    assert done.returncode == 0, done.stderr
    assert "small was skipped" in done.stderr
    assert "mocap.cs.cmu.edu" in done.stderr


@pytest.mark.parametrize("part", range(PARTS))
def test_every_experiment_has_a_quick_version(reproduction, tmp_path, part):
    """It ends within two minutes, no method fails, and its figures are written."""
    names = config.list_names(EXPERIMENTS)[part::PARTS]
    options = ("--quick", "--json", "-o", tmp_path / "out", "--jobs", 1)
    done = reproduction(*names, *options, timeout=120 * len(names))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["experiments"]
    assert list(results) == names
    for result in results.values():
        if "skipped" in result:
            assert "HIRANK_DATA" in result["skipped"]
            continue
        assert result["failures"] == []
        assert result["figures"]
        assert all(Path(path).stat().st_size > 1000 for path in result["figures"])


def test_every_experiment_has_a_description():
    names = config.list_names(EXPERIMENTS)
    assert len(names) >= 13
    for name in names:
        assert (EXPERIMENTS / name / "README.md").stat().st_size > 200
