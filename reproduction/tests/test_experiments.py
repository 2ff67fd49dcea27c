"""The experiments of the repository: what their files say fits together."""

from importlib import import_module

import pytest

from reproduction.__main__ import EXPERIMENTS as FOLDER
from reproduction.config import load, names
from reproduction.plan import plan_of

NAMES = names(FOLDER)


@pytest.mark.parametrize("name", NAMES)
def test_claims_and_pictures_are_about_what_is_run(name):
    experiment = load(FOLDER, name)
    methods = {entry.method.name for entry in experiment.methods}
    for told in (*experiment.claims, *experiment.pictures, *experiment.expected):
        asked = {*told.get("methods", ()), *told.get("than", ()), *told.get("paper", {})}
        asked |= {told[key] for key in ("method",) if key in told}
        assert asked <= methods, told
        if isinstance(told.get("data"), list):
            assert set(told["data"]) <= set(experiment.data), told
        assert set(told.get("rates", ())) <= set(experiment.rates), told
    for band in experiment.expected:
        assert band.get("data", experiment.data[0]) in experiment.data, band
        assert band.get("rate", experiment.rates[0]) in experiment.rates, band
        assert band.get("pattern", experiment.patterns[0]) in experiment.patterns, band
        assert {"from", "to"} & band.keys(), band
    for claim in experiment.claims:
        assert claim["says"].endswith("."), claim


@pytest.mark.parametrize("name", NAMES)
def test_each_is_told_in_a_readme_and_has_a_small_version(name):
    readme = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# ")
    assert "--quick" in readme
    experiment, quick = load(FOLDER, name), load(FOLDER, name, quick=True)
    assert callable(import_module(f"reproduction.tasks.{experiment.task}").run)
    assert plan_of(quick).left({}) <= min(plan_of(experiment).left({}), 60)
