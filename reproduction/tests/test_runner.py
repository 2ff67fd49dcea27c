import pytest

from reproduction import config
from reproduction.cache import Cache
from reproduction.cells import Cell, CellResult, Measurement, Method
from reproduction.data import DataNotFoundError
from reproduction.runner import Budget, Costs, execute, run
from reproduction.schedule import make_schedule
from reproduction.tidy_table import make_rows

CONFIG = """
title = "Small"
shows = "nothing"
task = "completion"
data = ["one curved surface"]
rates = [0.2]
seeds = 2

[[method]]
name = "LRF"
estimator = "LRF"
grid = { rank = [2, 4] }

[[method]]
name = "mean"
estimator = "mean"
source = "peer"

[[method]]
name = "none"
estimator = "LRF"
settings = { rank = -1 }
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "small").mkdir()
    (folder / "small" / "config.toml").write_text(CONFIG)
    return config.load(folder, "small")


@pytest.fixture(scope="module")
def done(experiment, tmp_path_factory):
    """The files of a run with one process and of one with two, and the progress of the first."""
    paths, progress = [tmp_path_factory.mktemp("cells") / f"{jobs}.jsonl" for jobs in (1, 2)], []
    run(experiment, Cache(paths[0]), jobs=1, callback=progress.append)
    run(experiment, Cache(paths[1]), jobs=2)
    return paths, progress


def without_times(found):
    """Rows without what differs from run to run."""
    return [
        {key: value for key, value in row.items() if "seconds" not in key}
        for row in found
        if "seconds" not in row["measure"]
    ]


def test_the_number_of_processes_does_not_change_the_table(experiment, done):
    one, other = (without_times(make_rows(experiment, Cache(path))) for path in done[0])
    assert repr(one) == repr(other)  # NaN, of failures, equals nothing
    assert {row["method"] for row in one} == {"LRF", "mean", "none"}


def test_progress_is_reported(done):
    progress = done[1]
    assert [(p.done, p.total) for p in progress] == [(i + 1, 7) for i in range(7)]
    assert all(p.seconds_left >= 0 for p in progress)


def test_saved_results_are_not_run_again(experiment, done):
    path, progress = done[0][0], []
    before = path.read_bytes()
    run(experiment, Cache(path), jobs=2, callback=progress.append)
    assert not progress
    assert path.read_bytes() == before


def test_a_failure_is_a_result(experiment, done):
    failed = [row for row in make_rows(experiment, Cache(done[0][0])) if row["failure"]]
    assert [row["method"] for row in failed] == ["none", "none"]
    assert all("rank" in row["failure"] for row in failed)


def test_without_real_data_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRANK_DATA", str(tmp_path))
    (tmp_path / "real").mkdir()
    text = CONFIG.replace("one curved surface", "1R2RC")
    (tmp_path / "real" / "config.toml").write_text(text)
    with pytest.raises(DataNotFoundError, match="1R2RC"):
        run(config.load(tmp_path, "real"), Cache(tmp_path / "cells.jsonl"))


def test_the_same_cell_gives_the_same_numbers():
    method = Method("LRF", "LRF", settings={"rank": 3})
    cell = Cell("completion", "one curved surface", "random", 0.3, 4, method)
    one, other = (
        [m for m in execute(cell).measurements if "seconds" not in m.measure] for _ in range(2)
    )
    assert one == other
    assert len(one) >= 2


def test_times_are_estimated_from_the_most_similar_cells():
    def cell(name, data):
        return Cell("completion", data, "random", 0.3, 0, Method(name, "LRF"))

    costs = Costs()
    assert costs.estimate(cell("a", "x")) == 0
    costs.add(cell("a", "x"), 10.0)
    costs.add(cell("b", "y"), 30.0)
    assert costs.estimate(cell("a", "x")) == 10
    assert costs.estimate(cell("b", "x")) == 30
    assert costs.mean([cell("a", "x"), cell("c", "z")]) == 15
    assert costs.mean([]) == 0


def test_a_run_ends_before_its_budget_is_exceeded(experiment, tmp_path):
    cache, progress = Cache(tmp_path / "cells.jsonl"), []
    slow = make_schedule(experiment).pending({})[0]
    cache.add(CellResult(slow.key, (Measurement("missing error", 0.5),), 9.0, 9.0))

    left = run(experiment, cache, budget=Budget(seconds=8.0), callback=progress.append)

    assert (left, progress) == (6, [])  # the next cell is of the same method


def test_the_first_trials_are_run_whatever_time_they_take(experiment, tmp_path):
    cache, progress = Cache(tmp_path / "cells.jsonl"), []

    left = run(experiment, cache, budget=Budget(1e-9, min_trials=1), callback=progress.append)

    assert [one.cell.seed for one in progress] == [0] * 4
    assert left == 3


def test_outdated_results_are_measured_again_and_kept_until_then(experiment, done, tmp_path):
    path = tmp_path / "cells.jsonl"
    path.write_bytes(done[0][0].read_bytes())
    cache, progress = Cache(path), []
    before = dict(cache.results)
    mean = [one for one in make_schedule(experiment).cells if one.method.name == "mean"]
    cache.outdated = {one.key for one in mean}

    left = run(experiment, cache, budget=Budget(seconds=-1.0))
    assert (left, cache.results) == (2, before)
    left = run(experiment, cache, callback=progress.append)

    assert left == 0
    assert [one.cell for one in progress] == mean
    assert not cache.outdated
    assert cache.results.keys() == before.keys()
