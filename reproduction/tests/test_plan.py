import json
from dataclasses import replace

import pytest

from reproduction import config
from reproduction.cache import Cache
from reproduction.cells import Cell, Measurement, Method, Outcome
from reproduction.plan import plan_of
from reproduction.tidy_table import read, rows, write

CONFIG = """
title = "A title"
shows = "Figure 1"
task = "completion"
data = ["one curved surface", "ten linear subspaces"]
rates = [0.2, 0.4]
seeds = 3

[[method]]
name = "LRF"
estimator = "LRF"
settings = { scale = false }
grid = { rank = [2, 4, 8] }
settings_for = { "ten linear subspaces" = { rank = 3 } }

[[method]]
name = "hirank"
estimator = "KFMC"
source = "hirank"
data = ["one curved surface"]

[quick]
rates = [0.3]
seeds = 1
methods = ["LRF"]
[quick.settings.LRF]
rank = 2
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "config.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def experiment(folder):
    return config.load(folder, "example")


def outcome(one, error):
    return Outcome(one.key, (Measurement("missing error", error),), 1.0, 0.5)


def play(experiment, cache, errors=lambda one: one.method.settings.get("rank", 9) / 100):
    """All cells with made-up errors, in as many rounds as it takes."""
    rounds, plan = [], plan_of(experiment)
    while found := plan.waiting(cache.outcomes):
        rounds.append(found)
        for one in found:
            cache.add(outcome(one, errors(one)))
    return rounds


def test_an_experiment_is_read(experiment, folder):
    assert config.names(folder) == ["example"]
    assert (experiment.name, experiment.seeds, experiment.rates) == ("example", 3, (0.2, 0.4))
    assert experiment.patterns == ("random",)
    lrf, hirank = experiment.methods
    assert hirank.method == Method("hirank", "KFMC", "hirank", {})
    sizes = [m.settings["rank"] for m in lrf.variants("one curved surface")]
    assert sizes == [2, 4, 8]
    assert [m.settings for m in lrf.variants("ten linear subspaces")] == [
        {"scale": False, "rank": 3}
    ]


def test_the_quick_version_is_smaller(folder):
    quick = config.load(folder, "example", quick=True)
    assert (quick.rates, quick.seeds, len(quick.methods)) == ((0.3,), 1, 1)
    assert [m.settings["rank"] for m in quick.methods[0].variants("x")] == [2]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('task = "completion"', 'task = "completion"\nspeed = 1', "'speed' is no setting"),
        ('estimator = "LRF"', 'estimator = "SVD"', "no estimator 'SVD': there are KFMC"),
        ('data = ["one', 'data = ["a table", "one', "no table 'a table'"),
        ("grid = { rank", "grid = { rang", "'rang' is no setting of LRF: there are"),
        ("grid = {", "grit = {", "'grit' is no setting of a"),
        ('methods = ["LRF"]', 'methods = ["VMC"]', "no method 'VMC': there are LRF, hirank"),
        ("seeds = 3", "seeds = 0", "at least 1"),
        ('name = "hirank"', 'name = "LRF"', "same name"),
        ('source = "hirank"', "largest = 0", "largest must be a number of rows; got 0"),
        ('source = "hirank"', "largest = 9", "largest is for experiments with sizes"),
        ("seeds = 3", "seeds = ", "config.toml: "),
    ],
)
def test_what_can_not_be_meant_is_told(folder, old, new, message):
    path = folder / "example" / "config.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(config.ConfigError, match=message):  # noqa: PT012
        config.load(folder, "example")
        config.load(folder, "example", quick=True)


def test_a_method_may_leave_out_large_tables(folder):
    path = folder / "example" / "config.toml"
    large = CONFIG.replace("seeds = 3", "seeds = 1\nsizes = [10, 20, 40]", 1)
    path.write_text(large.replace('source = "hirank"', "largest = 20"))
    cells = plan_of(config.load(folder, "example")).waiting({})
    sizes = {one.options["n"] for one in cells if one.method.name == "hirank"}
    assert sizes == {10, 20}
    assert {one.options["n"] for one in cells if one.method.name == "LRF"} == {10, 20, 40}


def test_an_unknown_experiment_is_told(folder):
    with pytest.raises(config.ConfigError, match=r"no experiment 'other'.*it has example"):
        config.load(folder, "other")


def test_the_key_of_a_cell_is_its_content():
    one = Cell("completion", "mocap", "random", 0.1, 0, Method("a", "KFMC", settings={"x": 1}))
    assert one.key == replace(one).key
    others = [
        replace(one, seed=1),
        replace(one, rate=0.2),
        replace(one, options={"n": 3}),
        replace(one, method=replace(one.method, settings={"x": 2})),
    ]
    assert len({one.key, *(other.key for other in others)}) == 5
    swapped = [
        replace(one, method=replace(one.method, settings=settings))
        for settings in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]
    assert swapped[0].key == swapped[1].key


def test_all_settings_run_on_the_first_seed_and_the_best_on_the_others(experiment, tmp_path):
    cache = Cache(tmp_path / "cells.jsonl")
    total = plan_of(experiment).left({})
    first, later = play(experiment, cache)
    # 2 tables x 2 rates; on the first LRF has 3 settings and hirank 1, on the second LRF has 1
    assert len(first) == 2 * 3 + 2 * 3 + 2 * 3
    assert {one.seed for one in later} == {1, 2}
    assert {one.method.settings["rank"] for one in later} == {2}
    assert len(first) + len(later) == total
    assert plan_of(experiment).left(cache.outcomes) == 0


def test_a_method_that_always_fails_is_not_waited_for(experiment, tmp_path):
    cache, plan = Cache(tmp_path / "cells.jsonl"), plan_of(experiment)
    for one in plan.waiting({}):
        cache.add(Outcome(one.key, (), 1.0, 1.0, "ValueError: no"))
    tuned = plan.groups[0]
    assert (len(tuned.cells), tuned.chosen(cache.outcomes)) == (3, None)
    assert tuned.waiting(cache.outcomes) == []
    assert {row["failure"] for row in rows(experiment, cache)} == {"ValueError: no"}
    assert plan.left(cache.outcomes) == 0


def test_a_cut_line_costs_one_cell(experiment, tmp_path):
    path = tmp_path / "cells.jsonl"
    cache = Cache(path)
    cache.begin({"cores": 2})
    play(experiment, cache)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    again = Cache(path)
    assert len(again.outcomes) == len(cache.outcomes) - 1
    assert {facts["cores"] for facts in again.facts.values()} == {2}
    play(experiment, again)
    assert Cache(path).outcomes == cache.outcomes
    again.clear()
    assert not Cache(path).outcomes


def test_rows_do_not_hang_on_the_order_in_which_cells_came(experiment, tmp_path):
    one, other = Cache(tmp_path / "1.jsonl"), Cache(tmp_path / "2.jsonl")
    for cache in (one, other):
        cache.begin({"cores": 2})
    play(experiment, one)
    for key in sorted(one.outcomes):
        other.add(one.outcomes[key])
    assert rows(experiment, one) == rows(experiment, other)


def test_rows_say_which_settings_were_chosen(experiment, tmp_path):
    cache = Cache(tmp_path / "cells.jsonl")
    cache.begin({"cores": 2})
    play(experiment, cache)
    found = [row for row in rows(experiment, cache) if row["method"] == "LRF"]
    curved = [row for row in found if row["data"] == "one curved surface"]
    assert {json.loads(row["settings"])["rank"] for row in curved if row["chosen"]} == {2}
    assert sum(not row["chosen"] for row in curved) == 2 * 2
    assert all(row["cores"] == 2 and row["experiment"] == "example" for row in found)
    path = tmp_path / "table.parquet"
    write(path, found)
    assert read(path) == found


def test_the_last_value_of_a_curve_counts(experiment):
    group, done = plan_of(experiment).groups[0], {}
    for (one, *_), last in zip(group.cells, (0.3, 0.1, 0.2), strict=True):
        curve = (Measurement("missing error", last, 10), Measurement("missing error", 0.0, 1))
        done[one.key] = Outcome(one.key, curve, 1.0, 1.0)
    assert group.chosen(done) == 1


def test_of_settings_that_were_not_chosen_only_ends_are_kept(experiment, tmp_path):
    cache = Cache(tmp_path / "cells.jsonl")
    cache.begin({"cores": 2})
    for (one, *_), error in zip(plan_of(experiment).groups[0].cells, (0.3, 0.1, 0.2), strict=True):
        curve = [Measurement("missing error", error + 1 / at, at) for at in (2, 10**6)]
        points = [Measurement("x1", 0.5, 0, item) for item in range(4)]
        cache.add(Outcome(one.key, (*curve, *points), 1.0, 1.0))
    found = rows(experiment, cache)
    assert [row["measure"] for row in found if row["chosen"]] == 2 * ["missing error"] + 4 * ["x1"]
    others = [(row["measure"], row["at"]) for row in found if not row["chosen"]]
    assert others == 2 * [("missing error", 10**6)]
