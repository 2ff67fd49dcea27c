"""The side-by-side benchmark: two tiny sets from end to end, and its sums on hand-made numbers."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
FOLDER = Path(__file__).parents[2] / "benchmarks" / "side_by_side"
EXTRA = """
import os, signal
import numpy as np
from solvers import Solver

def wavy(seed):
    t = np.random.default_rng(seed).uniform(-1, 1, (40, 1))
    return np.hstack([t, t**2, 1000 * t, t + 5, 0 * t])

def broken(table, seed):
    print("it rains\\nand rains")
    raise ValueError("no luck\\ntoday")

def killed(table, seed):
    os.kill(os.getpid(), signal.SIGKILL)

def endless(table, seed):
    while True:
        pass

SETS = {"wavy": wavy, "flat": lambda seed: wavy(seed)[:30, :2]}
SOLVERS = {
    "broken": Solver(broken),
    "killed": Solver(killed),
    "endless": Solver(endless),
    "lazy": Solver(lambda table, seed: table),
    "absent": Solver(broken, "absent", "no_such_module"),
}
"""


def module(name):
    spec = importlib.util.spec_from_file_location(f"side_by_side_{name}", FOLDER / f"{name}.py")
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # for its dataclasses
    spec.loader.exec_module(loaded)
    return loaded


summary = module("summary")


def call(program, *arguments):
    command = [sys.executable, str(FOLDER / program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return what the runs printed, and their table."""
    folder = tmp_path_factory.mktemp("side_by_side")
    extra, path = folder / "extra.py", folder / "runs.csv"
    extra.write_text(EXTRA)
    options = ["--csv", path, "--extra", extra, "--sets", "wavy,flat", "--rates", "0.2"]
    options += ["--patterns", "uniform", "--limit", "1", "--seeds"]
    printed = [call("run.py", *options, "0", "--solvers", "mean,soft-impute")]
    more = "mean,soft-impute,broken,killed,endless,lazy,absent"
    options += ["0,1", "--sets", "flat", "--solvers", more, "--again", "mean"]
    printed.append(call("run.py", *options))
    return printed, path


@pytest.mark.slow
def test_every_cell_is_a_row_and_is_run_once_unless_asked_for(stored):
    printed, path = stored
    assert printed[0].splitlines()[0].startswith("0 flat")  # the smaller set first
    assert printed[0].splitlines()[-1].startswith("4 cells run, 4 in")
    assert printed[1].splitlines()[0] == "absent: left out, absent is not installed."
    # soft-impute of seed 0 was there; seed 1 of what took too long is not tried
    assert printed[1].splitlines()[-1].startswith("10 cells run, 13 in")
    rows = pd.read_csv(path)
    assert len(rows) == 14
    assert len(summary.read(path)) == 13
    assert rows.loc[rows["set"] == "wavy", "columns"].eq(4).all()  # the constant feature is out
    fine = rows[rows["solver"].isin(["mean", "soft-impute"])]
    assert fine["failure"].isna().all()
    assert (fine[["rmse", "mae", "seconds", "cpu_seconds", "base_mb"]] > 0).all(axis=None)
    assert (fine["peak_mb"] >= fine["base_mb"]).all()


@pytest.mark.slow
def test_a_failure_is_a_row_with_its_reason(stored):
    rows = summary.read(stored[1])
    reasons = dict(zip(rows["solver"], rows["failure"], strict=True))
    assert reasons["broken"] == "ValueError: no luck today (it rains)"
    assert reasons["killed"].startswith("process ended by SIGKILL")
    assert reasons["endless"] == "more than 1 s"
    assert "entries came back not finite" in reasons["lazy"]


@pytest.mark.slow
def test_the_report_contains_failures_and_draws_pictures(stored, tmp_path):
    pytest.importorskip("matplotlib")
    printed = call("report.py", stored[1], "--pictures", tmp_path)
    assert "> 1 s" in printed
    assert "broken: ValueError: no luck today (it rains)" in printed
    assert "not run" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"ranks.png", "sets_uniform.png"}


def table(scores, failures=()):
    """Medians of one run for each cell (by set name) and solver."""
    lines = [
        {
            "set": name,
            "pattern": "uniform",
            "rate": 0.2,
            "seed": 0,
            "solver": solver,
            "rows": 10,
            "columns": 2,
            "rmse": score,
            "seconds": 2.0 * (place + 1),
            "cpu_seconds": 1.0 * (place + 1),
            "peak_mb": 150.0,
            "base_mb": 140.0,
            "failure": "more than 240 s" if np.isinf(score) else "",
            "score": score,
        }
        for name, line in scores.items()
        for place, (solver, score) in enumerate(line.items())
    ]
    return summary.medians(pd.DataFrame(lines))


def test_standings():
    inf = np.inf
    results = table(
        {
            "a": {"soft-impute": 1.0, "iterative ridge": 2.0, "iterative extra-trees": 0.98},
            "b": {"soft-impute": 3.0, "iterative ridge": 1.0, "iterative extra-trees": inf},
        }
    )
    found = summary.standings(results)
    assert found["best"].to_dict() == {
        "soft-impute": 0,
        "iterative ridge": 1,
        "iterative extra-trees": 1,
    }
    assert found.loc["soft-impute", "within 3 %"] == 1
    assert found.loc["iterative extra-trees", "failed"] == 1
    assert found.loc["soft-impute", "worst ratio to linear"] == 3
    assert found.loc["iterative extra-trees", "worst ratio to linear"] == 0.98
    assert found.loc["iterative ridge", "CPU time"] == pytest.approx(2 / 3)


def test_failed_solvers_share_the_last_ranks_and_cells_not_run_by_all_are_left_out():
    score = pd.DataFrame(
        {"x": [0.1, 0.2, 0.3], "y": [np.inf, 0.1, np.nan], "z": [np.inf, 0.3, 0.1]}
    )
    assert summary.ranks(score).to_numpy().tolist() == [[1, 2.5, 2.5], [2, 1, 3]]


def test_the_critical_difference_is_the_one_in_demsar_2006():
    assert summary.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert summary.critical_difference(4, 14, level=0.1) == pytest.approx(1.12, abs=0.005)


@pytest.mark.parametrize(
    ("difference", "groups"),
    [
        (0.1, []),
        (0.6, [("a", "b"), ("c", "d")]),
        (1.2, [("a", "b"), ("b", "d")]),
        (1.6, [("a", "c"), ("b", "d")]),
        (9.0, [("a", "e")]),
    ],
)
def test_cliques_are_the_largest_groups_within_the_difference(difference, groups):
    ranks = pd.Series({"e": 5.0, "a": 1.0, "b": 1.5, "c": 2.5, "d": 2.6})
    assert summary.cliques(ranks, difference) == groups


def test_standardizing_comes_back_in_the_units_of_the_table():
    impute = module("solvers").standardized(lambda given, seed: np.nan_to_num(given))
    incomplete = np.array([[1.0, 1e6, 7.0], [3.0, np.nan, 7.0], [np.nan, 3e6, np.nan]])
    means = np.array([2.0, 2e6, 7.0])
    np.testing.assert_allclose(
        impute(incomplete, 0), np.where(np.isnan(incomplete), means, incomplete)
    )
