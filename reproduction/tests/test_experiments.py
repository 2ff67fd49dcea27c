"""The files of the experiments are consistent."""

from importlib import import_module

import pytest

from reproduction.__main__ import EXPERIMENTS as FOLDER
from reproduction.config import list_names, load
from reproduction.lowest import find_claim
from reproduction.schedule import make_schedule

NAMES = list_names(FOLDER)


@pytest.mark.parametrize("name", NAMES)
def test_claims_and_figures_name_what_is_run(name):
    experiment = load(FOLDER, name)
    methods = {entry.method.name for entry in experiment.methods}
    for part in (*experiment.claims, *experiment.figures, *experiment.expected):
        asked = {*part.get("methods", ()), *part.get("than", ()), *part.get("paper", {})}
        asked |= {part[key] for key in ("method",) if key in part}
        assert asked <= methods, part
        if isinstance(part.get("data"), list):
            assert set(part["data"]) <= set(experiment.data), part
        assert set(part.get("rates", ())) <= set(experiment.rates), part
    for band in experiment.expected:
        assert band.get("data", experiment.data[0]) in experiment.data, band
        assert band.get("rate", experiment.rates[0]) in experiment.rates, band
        assert band.get("pattern", experiment.patterns[0]) in experiment.patterns, band
        assert {"from", "to"} & band.keys(), band
    for claim in experiment.claims:
        assert claim["statement"].endswith("."), claim


def test_runs_of_motion_capture_are_reused_by_the_experiment_on_groups():
    groups, mocap = (make_schedule(load(FOLDER, name)) for name in ("mocap-groups", "mocap"))

    own = {cell.key for cell in groups.cells} - {cell.key for cell in mocap.cells}

    assert load(FOLDER, "mocap-groups").reuse == ("mocap",)
    assert {cell.method.name for cell in groups.cells if cell.key in own} == {"group sparse"}


@pytest.mark.parametrize("name", NAMES)
def test_experiments_whose_tables_are_read_exist(name):
    assert set(load(FOLDER, name).reuse) <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "n_cells"),
    [("synthetic-offline", 21), ("synthetic-online", 12), ("synthetic-ose", 12), ("mocap", 8)],
)
def test_every_cell_of_a_figure_of_the_paper_is_counted(name, n_cells):
    experiment = load(FOLDER, name)
    claim = find_claim(experiment)
    assert claim is not None
    cells = {(c.data, c.pattern, c.rate) for c in make_schedule(experiment).cells}
    assert len(cells) == n_cells
    paper = {each.method.name for each in experiment.methods if each.method.source == "paper"}
    assert paper <= set(claim["than"])
    assert claim["methods"] == ["hirank"]


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_readme_and_a_quick_version(name):
    readme = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# ")
    assert "--quick" in readme
    experiment, quick = load(FOLDER, name), load(FOLDER, name, quick=True)
    assert callable(import_module(f"reproduction.tasks.{experiment.task}").run)
    n_runs = [len(make_schedule(one).pending({})) for one in (quick, experiment)]
    assert n_runs[0] <= min(n_runs[1], 60)
