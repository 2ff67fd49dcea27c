"""The files of the experiments are consistent."""

from importlib import import_module

import pytest

from reproduction.__main__ import EXPERIMENTS as FOLDER
from reproduction.config import list_names, load
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


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_readme_and_a_quick_version(name):
    readme = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# ")
    assert "--quick" in readme
    experiment, quick = load(FOLDER, name), load(FOLDER, name, quick=True)
    assert callable(import_module(f"reproduction.tasks.{experiment.task}").run)
    n_runs = [len(make_schedule(one).pending({})) for one in (quick, experiment)]
    assert n_runs[0] <= min(n_runs[1], 60)
