import json
from dataclasses import replace

import pytest

from reproduction import config
from reproduction.cache import Cache
from reproduction.cells import Cell, CellResult, Measurement, Method
from reproduction.schedule import make_schedule
from reproduction.tidy_table import make_rows, read_results, read_table, write_table

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
estimator = "Imputer"
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


def result(one, error):
    return CellResult(one.key, (Measurement("missing error", error),), 1.0, 0.5)


def finish(experiment, cache, errors=lambda one: one.method.settings.get("rank", 9) / 100):
    """Add results with synthetic errors for all cells; return the cells of each round."""
    rounds, schedule = [], make_schedule(experiment)
    while found := schedule.pending(cache.results):
        rounds.append(found)
        for one in found:
            cache.add(result(one, errors(one)))
    return rounds


def test_an_experiment_is_read(experiment, folder):
    assert config.list_names(folder) == ["example"]
    assert (experiment.name, experiment.seeds, experiment.rates) == ("example", 3, (0.2, 0.4))
    assert experiment.patterns == ("random",)
    lrf, hirank = experiment.methods
    assert hirank.method == Method("hirank", "Imputer", "hirank", {})
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
        (
            'task = "completion"',
            'task = "completion"\nspeed = 1',
            "unknown setting 'speed'; expected one of",
        ),
        (
            'estimator = "LRF"',
            'estimator = "SVD"',
            "unknown estimator 'SVD'; expected one of Imputer",
        ),
        ('data = ["one', 'data = ["a table", "one', "unknown table 'a table'"),
        ("grid = { rank", "grid = { rang", "unknown setting of LRF 'rang'; expected one of"),
        ("grid = {", "grit = {", "unknown setting of a .* 'grit'"),
        (
            'methods = ["LRF"]',
            'methods = ["VMC"]',
            "unknown method 'VMC'; expected one of LRF, hirank",
        ),
        ("seeds = 3", "seeds = 0", "at least 1"),
        ("seeds = 3", 'search = "never"', "unknown search 'never'; expected one of first trial, e"),
        ('name = "hirank"', 'name = "LRF"', "same name"),
        ('source = "hirank"', "max_size = 0", "max_size must be a positive integer; got 0"),
        ('source = "hirank"', "max_size = 9", "max_size requires sizes"),
        ("seeds = 3", "seeds = ", "config.toml: "),
    ],
)
def test_invalid_files_are_errors(folder, old, new, message):
    path = folder / "example" / "config.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(config.ConfigError, match=message):  # noqa: PT012
        config.load(folder, "example")
        config.load(folder, "example", quick=True)


def test_a_method_can_be_limited_to_small_sizes(folder):
    path = folder / "example" / "config.toml"
    large = CONFIG.replace("seeds = 3", "seeds = 1\nsizes = [10, 20, 40]", 1)
    path.write_text(large.replace('source = "hirank"', "max_size = 20"))
    cells = make_schedule(config.load(folder, "example")).pending({})
    sizes = {one.options["n"] for one in cells if one.method.name == "hirank"}
    assert sizes == {10, 20}
    assert {one.options["n"] for one in cells if one.method.name == "LRF"} == {10, 20, 40}


def test_an_unknown_experiment_is_an_error(folder):
    with pytest.raises(config.ConfigError, match=r"no experiment 'other'.*available: example"):
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
    schedule = make_schedule(experiment)
    total = len(schedule.pending({})) + schedule.n_later({})
    first, later = finish(experiment, cache)
    # 2 tables x 2 rates; on the first LRF has 3 settings and hirank 1, on the second LRF has 1
    assert len(first) == 2 * 3 + 2 * 3 + 2 * 3
    assert {one.seed for one in later} == {1, 2}
    assert {one.method.settings["rank"] for one in later} == {2}
    assert len(first) + len(later) == total
    assert schedule.pending(cache.results) == []
    assert schedule.n_later(cache.results) == 0


def test_a_method_that_always_fails_has_no_pending_cells(experiment, tmp_path):
    cache, schedule = Cache(tmp_path / "cells.jsonl"), make_schedule(experiment)
    for one in schedule.pending({}):
        cache.add(CellResult(one.key, (), 1.0, 1.0, "ValueError: no"))
    tuned = schedule.groups[0]
    assert (len(tuned.cells), tuned.select(cache.results, 0)) == (3, None)
    assert tuned.pending(cache.results) == []
    assert {row["failure"] for row in make_rows(experiment, cache)} == {"ValueError: no"}
    assert schedule.n_later(cache.results) == 0


def test_a_truncated_line_loses_one_cell(experiment, tmp_path):
    path = tmp_path / "cells.jsonl"
    cache = Cache(path)
    cache.begin({"cores": 2})
    finish(experiment, cache)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    again = Cache(path)
    assert len(again.results) == len(cache.results) - 1
    assert {facts["cores"] for facts in again.facts.values()} == {2}
    finish(experiment, again)
    assert Cache(path).results == cache.results
    again.remove_journal()
    assert not Cache(path).results


def test_rows_do_not_depend_on_the_order_of_results(experiment, tmp_path):
    one, other = Cache(tmp_path / "1.jsonl"), Cache(tmp_path / "2.jsonl")
    for cache in (one, other):
        cache.begin({"cores": 2})
    finish(experiment, one)
    for key in sorted(one.results):
        other.add(one.results[key])
    assert make_rows(experiment, one) == make_rows(experiment, other)


def test_rows_mark_the_selected_settings(experiment, tmp_path):
    cache = Cache(tmp_path / "cells.jsonl")
    cache.begin({"cores": 2})
    finish(experiment, cache)
    found = [row for row in make_rows(experiment, cache) if row["method"] == "LRF"]
    curved = [row for row in found if row["data"] == "one curved surface"]
    assert {json.loads(row["settings"])["rank"] for row in curved if row["selected"]} == {2}
    assert sum(not row["selected"] for row in curved) == 2 * 2
    assert all(row["cores"] == 2 and row["experiment"] == "example" for row in found)


def test_with_a_search_in_every_trial_each_has_its_own_settings(experiment, tmp_path):
    experiment = replace(experiment, search=config.EVERY_TRIAL)
    cache = Cache(tmp_path / "cells.jsonl")
    cache.begin({"cores": 2})
    best = {0: 2, 1: 8, 2: 4}

    (only,) = finish(
        experiment, cache, lambda one: abs(one.method.settings.get("rank", 0) - best[one.seed])
    )

    # 2 rates x 3 trials; on the first table LRF has 3 settings and hirank 1, on the other LRF has 1
    assert len(only) == 2 * 3 * (3 + 1 + 1)
    assert [one.seed for one in only] == sorted(one.seed for one in only)
    rows = [row for row in make_rows(experiment, cache) if row["method"] == "LRF"]
    selected = {
        row["seed"]: json.loads(row["settings"])["rank"]
        for row in rows
        if row["selected"] and row["data"] == "one curved surface"
    }
    assert selected == best


def test_a_trial_without_a_search_has_the_settings_of_the_first(experiment):
    """As in a table from before settings were searched in every trial."""
    experiment = replace(experiment, search=config.EVERY_TRIAL)
    group, done = make_schedule(experiment).groups[0], {}

    def add(variant, trial, error):
        one = group.cells[variant][trial]
        done[one.key] = result(one, error)

    for variant, error in enumerate((0.3, 0.1, 0.2)):
        add(variant, 0, error)
    assert group.select(done, 1) is None
    add(0, 1, 0.4)
    assert group.select(done, 1) is None  # which of the others is best is not known
    add(1, 1, 0.5)
    assert group.select(done, 1) == 0
    add(2, 1, 0.1)
    assert group.select(done, 1) == 2


def test_a_table_gives_back_the_results_that_it_was_made_of(experiment, tmp_path):
    cache = Cache(tmp_path / "cells.jsonl")
    cache.begin({"cores": 2})
    finish(experiment, cache)
    key = next(iter(cache.results))
    cache.add(CellResult(key, (), 1.0, 0.5, "ValueError: no", "abc"))
    rows = make_rows(experiment, cache)
    write_table(tmp_path / "table.parquet", rows)

    saved = list(read_results(read_table(tmp_path / "table.parquet")))

    again = Cache(tmp_path / "none.jsonl", saved)
    assert again.results == cache.results
    assert again.facts == cache.facts
    assert repr(make_rows(experiment, again)) == repr(rows)


def test_the_journal_replaces_results_of_tables(experiment, tmp_path):
    old, path = make_schedule(experiment).cells[0], tmp_path / "cells.jsonl"
    Cache(path).add(result(old, 0.1))

    cache = Cache(path, [(result(old, 0.9), {"cores": 4})])

    assert cache.results[old.key] == result(old, 0.1)


def test_settings_are_selected_by_the_last_value_of_a_curve(experiment):
    group, done = make_schedule(experiment).groups[0], {}
    for (one, *_), last in zip(group.cells, (0.3, 0.1, 0.2), strict=True):
        curve = (Measurement("missing error", last, 10), Measurement("missing error", 0.0, 1))
        done[one.key] = CellResult(one.key, curve, 1.0, 1.0)
    assert group.select(done, 0) == 1


def test_of_settings_that_are_not_selected_only_ends_are_kept(experiment, tmp_path):
    cache = Cache(tmp_path / "cells.jsonl")
    cache.begin({"cores": 2})
    for (one, *_), error in zip(
        make_schedule(experiment).groups[0].cells, (0.3, 0.1, 0.2), strict=True
    ):
        curve = [Measurement("missing error", error + 1 / at, at) for at in (2, 10**6)]
        points = [Measurement("x1", 0.5, 0, item) for item in range(4)]
        cache.add(CellResult(one.key, (*curve, *points), 1.0, 1.0))
    found = make_rows(experiment, cache)
    assert [row["measure"] for row in found if row["selected"]] == 2 * ["missing error"] + 4 * [
        "x1"
    ]
    others = [(row["measure"], row["at"]) for row in found if not row["selected"]]
    assert others == 2 * [("missing error", 10**6)]
