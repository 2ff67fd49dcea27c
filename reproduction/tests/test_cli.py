"""The experiments: a small one of our own in detail, and each of the real ones with --quick."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from reproduction import cli, config
from reproduction.cells import Cell, Method, Outcome
from reproduction.runner import Progress
from reproduction.tidy_table import read

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
DATA = EXPERIMENTS.parents[1] / "shared" / "data"
PARTS = 4
"""Experiments are run in so many processes: less time goes into starting them."""
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
settings = { n_components = 20, kernel = "rbf", bandwidth = "path", mix = false, max_iter = 20 }

[quick]
seeds = 1

[[picture]]
kind = "lines"
measure = "relative error"
x = "rate"
panels = "data"

[[claim]]
says = "Dictionaries are better than low rank."
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


def made(folder):
    (folder / "experiments" / "small").mkdir(parents=True)
    (folder / "experiments" / "small" / "config.toml").write_text(CONFIG)
    return folder


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path)


@pytest.fixture(scope="module")
def quick(hirank, tmp_path_factory):
    """A quick run: the process, and the folder."""
    folder = made(tmp_path_factory.mktemp("quick"))
    return hirank("reproduce", "small", "--quick", "--json", "--jobs", 1, cwd=folder), folder


def timeless(path):
    return [
        {key: value for key, value in row.items() if "seconds" not in key}
        for row in read(path)
        if "seconds" not in row["measure"]
    ]


def test_they_are_listed(hirank, folder):
    done = hirank("reproduce", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "small  Two methods on one surface" in done.stdout


def test_unknown_ones_and_a_missing_folder_are_told(hirank, folder):
    done = hirank("reproduce", "large", cwd=folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no experiment 'large'" in done.stderr
    assert "it has small" in done.stderr
    done = hirank("reproduce", "--experiments", folder)  # a folder, but above the experiments
    assert done.returncode == 2
    assert "each is a folder in it with a config.toml" in done.stderr


def test_without_a_terminal_it_tells_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(cli, "TOLD_EVERY", 0.0)
    tell = cli._now_and_then("small")
    cell = Cell("completion", "mocap", "random", 0.1, 0, Method("a", "KFMC"))
    tell(Progress(cell, Outcome(cell.key, (), 1.0, 1.0), 3, 8, 130.0))
    tell(Progress(cell, Outcome(cell.key, (), 1.0, 1.0), 8, 8, 0.0))
    assert capsys.readouterr().err == (
        "small: 3 of 8 runs, about 2 min left\nsmall: 8 of 8 runs, less than a minute left\n"
    )


def test_a_quick_run_writes_table_pictures_and_page(quick):
    done, folder = quick
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    out = folder / "build" / "reproduction"
    rows = read(out / "tables" / "small.parquet")
    assert {row["method"] for row in rows} == {"LRF", "KFMC"}
    assert {row["rate"] for row in rows} == {0.2}
    assert all(row["cores"] and row["numpy"] and row["when"] for row in rows)
    made = sorted(Path(path).suffix for path in told["experiments"]["small"]["pictures"])
    assert made == [".png", ".svg"]
    page = (folder / "build" / "reproduction.md").read_text()
    assert "Dictionaries are better than low rank." in page
    assert "reproduction/figures/small-1.png" in page
    assert told["experiments"]["small"]["outside"] == []  # bands are for full runs


def test_a_killed_run_goes_on_where_it_was(hirank, folder):
    """With the same table in the end as a run that nobody disturbed, and no process left over."""
    whole, cut = folder / "whole", folder / "cut"
    done = hirank("reproduce", "small", "-o", whole, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "LRF, one curved surface" in done.stderr  # outside of what is expected of it
    assert "expected 0.5 to 0.6" in done.stderr
    cells = cut / "cells" / "small.jsonl"
    command = [sys.executable, "-m", "hirank", "reproduce", "small", "-o", str(cut), "--jobs", "1"]
    running = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    while not cells.exists() or len(cells.read_bytes().splitlines()) < 3:
        assert running.poll() is None
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    kept = cells.read_bytes()
    done = hirank("reproduce", "small", "-o", cut, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert cells.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    assert timeless(cut / "tables" / "small.parquet") == timeless(
        whole / "tables" / "small.parquet"
    )
    assert (cut / "figures" / "small-1.svg").read_bytes() == (
        whole / "figures" / "small-1.svg"
    ).read_bytes()


def test_ctrl_c_ends_it_soon_and_says_how_to_go_on(folder):
    """With all of its processes, to each of which the terminal sends the signal."""
    path = folder / "experiments" / "small" / "config.toml"
    path.write_text(path.read_text().replace("seeds = 2", "seeds = 100", 1))
    cells = folder / "out" / "cells" / "small.jsonl"
    running = subprocess.Popen(
        [sys.executable, "-m", "hirank", "reproduce", "small", "-o", "out", "--jobs", "2"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not cells.exists() or len(cells.read_bytes().splitlines()) < 3:
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    told = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert told.endswith("are kept, and the same command goes on from them.\n")
    assert "Traceback" not in told
    deadline = time.monotonic() + 20
    with suppress(ProcessLookupError):  # none is left of its group after a while
        while time.monotonic() < deadline:
            os.killpg(running.pid, 0)
            time.sleep(0.05)
    assert time.monotonic() < deadline


def test_fresh_runs_everything_again_and_other_code_is_told(hirank, quick):
    _, folder = quick
    cells = folder / "build" / "reproduction" / "cells" / "small.jsonl"
    cells.write_text(cells.read_text().replace('"code": "', '"code": "other'))
    options = ("reproduce", "small", "--quick", "--jobs", 1)
    done = hirank(*options, cwd=folder)
    assert "3 runs are kept from other code; --fresh runs them again" in done.stderr
    assert '"code": "other' in cells.read_text()
    done = hirank(*options, "--fresh", cwd=folder)
    assert "other code" not in done.stderr
    assert '"code": "other' not in cells.read_text()


def test_fewer_seeds_can_be_asked_for_and_failures_are_told(folder, capsys, monkeypatch):
    monkeypatch.setenv("HIRANK_DATA", str(folder))  # or it would be set for other tests
    out, path = folder / "out", folder / "experiments" / "small" / "config.toml"
    path.write_text(path.read_text().replace("rank = [3, 6]", "rank = [3, -1]"))
    cli.run(
        names=["small"], quick=False, output=out, experiments=folder / "experiments", seeds=1,
        jobs=1, fresh=False, as_json=True, quiet=False,
    )  # fmt: skip
    assert {row["seed"] for row in read(out / "tables" / "small.parquet")} == {0}
    assert "1 seed;" in out.with_suffix(".md").read_text()
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == str(out.with_suffix(".md"))
    assert told["experiments"]["small"]["cells"] == 3
    (note,) = (note for note in told["notes"] if "failed" in note)
    assert note.startswith("small: failed: LRF: 1 of 2 runs (")


def test_without_real_data_an_experiment_is_left_out(hirank, folder):
    path = folder / "experiments" / "small" / "config.toml"
    path.write_text(path.read_text().replace("one curved surface", "mocap"))
    done = hirank("reproduce", "all", "--quick", cwd=folder, env={"HIRANK_DATA": str(folder)})
    assert done.returncode == 0, done.stderr
    assert "small is left out" in done.stderr
    assert "mocap.cs.cmu.edu" in done.stderr


@pytest.mark.parametrize("part", range(PARTS))
def test_every_experiment_has_a_quick_version(hirank, tmp_path, part):
    """It runs within two minutes, no method fails, and what it draws is there."""
    names = config.names(EXPERIMENTS)[part::PARTS]
    done = hirank(
        "reproduce", *names, "--quick", "--json", "-o", tmp_path / "out", "--jobs", 1,
        env={"HIRANK_DATA": str(DATA)} if DATA.is_dir() else None, timeout=120 * len(names),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["experiments"]
    assert list(told) == names
    for found in told.values():
        if "left out" in found:
            assert "HIRANK_DATA" in found["left out"]
            continue
        assert found["failures"] == []
        assert found["pictures"]
        assert all(Path(path).stat().st_size > 1000 for path in found["pictures"])


def test_every_experiment_says_what_it_is():
    names = config.names(EXPERIMENTS)
    assert len(names) >= 13
    for name in names:
        assert (EXPERIMENTS / name / "README.md").stat().st_size > 200
