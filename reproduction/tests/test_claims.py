import numpy as np
import pytest

from reproduction.claims import check_expected, judge
from reproduction.summary import count_failures, last_points, select, summarize
from reproduction.tests.synthetic_results import experiment, row

METHODS = [("LRF", "LRF", "paper"), ("VMC", "VMC", "paper"), ("hirank", "KFMC", "hirank")]
RATES = [0.1, 0.3]


def make_study(values, measure="relative error", **more):
    """Values by method: one for each rate, or {at: value}, or {rate: ...} of three seeds."""
    record = experiment("synthetic", "completion", METHODS, [], rates=RATES, seeds=3, **more)
    rows = []
    for method, given in values.items():
        for place, rate in enumerate(RATES):
            here = given if isinstance(given, dict) else {0.0: given[place]}
            rows += [
                row(record, method, measure, value * factor, rate=rate, seed=seed, at=float(at))
                for at, value in here.items()
                for seed, factor in enumerate([1.0, 0.9, 1.2])
            ]
    return record, rows


def verdict(values, measure="relative error", **claim):
    record, rows = make_study(values, measure)
    record.claims = [{"statement": "So it is.", "measure": measure} | claim]
    (found,) = judge(record, rows)
    return found


LOWER = {"kind": "lower", "methods": ["VMC", "hirank"], "than": ["LRF"]}
RATIO = {"kind": "ratio", "methods": ["hirank"], "than": ["LRF", "VMC"], "at_least": 10}
FALLS = {"kind": "falls", "methods": ["hirank"]}
ORDERED = {"kind": "ordered", "methods": ["hirank", "VMC", "LRF"]}
CURVE = {1: 1.0, 2: 0.8, 3: 0.9, 4: 0.4}


@pytest.mark.parametrize(
    ("values", "claim", "holds"),
    [
        ({"LRF": [3, 3], "VMC": [4, 4], "hirank": [1, 2]}, LOWER, "yes"),
        ({"LRF": [3, 3], "VMC": [4, 4], "hirank": [1, 5]}, LOWER, "partly"),
        ({"LRF": [3, 3], "VMC": [4, 4], "hirank": [3, 5]}, LOWER, "no"),
        ({"LRF": [3, 3], "hirank": [3, 3]}, LOWER | {"or_equal": True}, "yes"),
        ({"LRF": [30, 30], "VMC": [20, 20], "hirank": [1, 2]}, RATIO, "yes"),
        ({"LRF": [30, 30], "VMC": [20, 9], "hirank": [1, 1]}, RATIO, "partly"),
        ({"LRF": [3, 3], "VMC": [4, 4], "hirank": [1, 2]}, RATIO, "no"),
        ({"hirank": CURVE}, FALLS, "yes"),
        ({"hirank": CURVE}, FALLS | {"share": 0.9}, "no"),
        ({"hirank": CURVE | {5: 1.5}}, FALLS, "no"),
        ({"hirank": [1, 1], "VMC": [2, 1], "LRF": [3, 2]}, ORDERED, "yes"),
        ({"hirank": [1, 1], "VMC": [2, 3], "LRF": [3, 2]}, ORDERED, "partly"),
        ({"hirank": [1, 1], "VMC": [1, 1], "LRF": [1, 1]}, ORDERED, "no"),
        ({"hirank": [19, 19]}, {"kind": "equals", "value": 19}, "yes"),
        ({"hirank": [19, 20]}, {"kind": "equals", "value": 19}, "partly"),
        ({"hirank": [19, 20], "VMC": [2, 3]}, {"kind": "equals", "value": 19}, "no"),
        ({"hirank": [18, 20]}, {"kind": "equals", "value": 19}, "no"),
        ({"hirank": [18, 20]}, {"kind": "equals", "value": 19, "tolerance": 1}, "yes"),
        ({"hirank": [1, 2]}, {"kind": "at_most", "value": 2}, "yes"),
        ({"hirank": [3, 4]}, {"kind": "at_most", "value": 2}, "no"),
        ({"hirank": [3, 2]}, {"kind": "at_least", "value": 2}, "yes"),
        ({"hirank": [1, 1]}, {"kind": "at_least", "value": 2}, "no"),
        (
            {"VMC": {n: 2e-6 * n**3 for n in (100, 200, 400)}},
            {"kind": "exponent", "from": 2.5, "to": 3.5},
            "yes",
        ),
        ({"VMC": {n: n for n in (100, 200, 400)}}, {"kind": "exponent", "from": 2.5}, "no"),
    ],
)
def test_each_kind_of_claim_holds_and_fails(values, claim, holds):
    assert verdict(values, **claim).holds == holds


@pytest.mark.parametrize(
    "claim", [LOWER, RATIO, FALLS, ORDERED, {"kind": "equals", "value": 1}, {"kind": "exponent"}]
)
def test_without_numbers_a_claim_is_not_run(claim):
    found = verdict({"LRF": [1, 1], "hirank": [1, 1]}, **claim | {"rates": [0.7]})
    assert (found.holds, found.n_cases) == ("not run", 0)
    assert "no numbers" in found.numbers


def test_numbers_cases_and_exceptions_are_described():
    found = verdict({"LRF": [3, 3], "hirank": [1, 6]}, **LOWER)
    assert (found.n_held, found.n_cases) == (1, 2)
    assert "1.75 (from 0.5 to 3) times that of the best of VMC and hirank" in found.numbers
    assert "in 1 of 2 cases (not: one curved surface, 30 % missing)" in found.numbers
    assert "No numbers of VMC." in found.numbers


def test_the_share_of_falling_steps_is_described():
    assert (
        "66.7\N{NO-BREAK SPACE}% of the steps fall" in verdict({"hirank": CURVE}, **FALLS).numbers
    )


def test_a_claim_can_be_restricted_to_some_places():
    values = {"LRF": [3, 3], "hirank": [1, 6]}
    assert verdict(values, **LOWER, rates=[0.1]).holds == "yes"
    assert verdict(values, **LOWER, rates=[0.3]).holds == "no"
    assert verdict(values, **LOWER, data="another").holds == "not run"


def test_curves_are_judged_at_their_end_or_at_a_given_point():
    values = {"LRF": {1: 1.0, 9: 1.0}, "hirank": {1: 2.0, 9: 0.5}}
    assert verdict(values, **LOWER).holds == "yes"
    assert verdict(values, **LOWER, at=1).holds == "no"


def test_a_value_may_differ_by_data():
    claim = {"kind": "equals", "value": {"one curved surface": 19, "another": 30}}
    assert verdict({"hirank": [19, 19]}, **claim).holds == "yes"
    assert verdict({"hirank": [30, 30]}, **claim).holds == "no"


def test_an_explanation_is_kept():
    found = verdict({"LRF": [1, 1], "hirank": [2, 2]}, **LOWER, explanation="Few rows.")
    assert found.explanation == "Few rows."


def test_invalid_claims_are_errors():
    with pytest.raises(ValueError, match=r"kind of a claim must be one of lower, .*; got 'beats'"):
        verdict({}, kind="beats")
    with pytest.raises(ValueError, match="synthetic: a claim of kind 'ratio' requires 'at_least'"):
        verdict({}, kind="ratio", methods=["VMC"], than=["LRF"])
    with pytest.raises(ValueError, match="a claim names unknown methods: VMCC"):
        verdict({}, kind="lower", methods=["VMCC"], than=["LRF"])


def test_a_quick_run_may_lack_methods():
    record, rows = make_study({"LRF": [3, 3], "hirank": [1, 1]})
    record.quick = True
    record.claims = [LOWER | {"statement": "", "measure": "relative error", "than": ["LRF", "NNM"]}]
    found = judge(record, rows)[0]
    assert found.holds == "yes"
    assert "NNM." not in found.numbers.partition("No numbers of")[2]


def test_methods_are_named_where_there_are_several():
    numbers = verdict({"VMC": [1, 2], "hirank": [3, 4]}, kind="at_least", value=2).numbers
    assert "1 (VMC, one curved surface, 10 % missing)" in numbers


def test_failed_runs_and_settings_that_are_not_selected_do_not_count():
    record, rows = make_study({"LRF": [3, 3], "hirank": [1, 1]})
    record.claims = [LOWER | {"statement": "", "measure": "relative error"}]
    noise = [r | {"value": 100.0} for r in rows if r["method"] == "hirank"]
    rows += [r | {"selected": False} for r in noise]
    rows += [r | {"failure": "ValueError: no", "seed": 7, "cell": f"7, {r['rate']}"} for r in noise]
    rows += [r | {"value": float("nan"), "seed": 8, "cell": f"8, {r['rate']}"} for r in noise]
    assert judge(record, rows)[0].holds == "yes"
    (failed,) = count_failures(rows)
    assert (failed.method, failed.failed) == ("hirank", 4)


BAND = {"method": "hirank", "rate": 0.3, "measure": "relative error", "from": 0.0, "to": 1.0}


@pytest.mark.parametrize(
    ("band", "sentences"),
    [
        (BAND, []),
        (
            BAND | {"to": 0.1},
            ["hirank, one curved surface, 30 % missing: relative error is 0.5, expected 0 to 0.1."],
        ),
        (BAND | {"from": 0.6}, 1),
        ({"method": "hirank", "measure": "relative error", "to": 0.1}, 2),
        (
            BAND | {"method": "VMC"},
            ["VMC, 30 % missing: there is no relative error, expected 0 to 1."],
        ),
        (BAND | {"rate": 0.9}, []),  # not part of this experiment, when it is a quick one
        (BAND | {"method": "another"}, []),
    ],
)
def test_numbers_outside_of_bands_are_reported(band, sentences):
    record, rows = make_study({"hirank": [0.5, 0.5]})
    record.expected = [band]
    found = check_expected(record, rows)
    assert len(found) == sentences if isinstance(sentences, int) else found == sentences


def test_medians_and_quartiles_over_seeds():
    record = experiment("synthetic", "completion", METHODS, [])
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    rows = [row(record, "LRF", "rank", value, seed=seed) for seed, value in enumerate(values)]
    assert [tuple(each) for each in summarize(rows).values()] == [(3.0, 2.0, 4.0, 5)]


def test_items_of_a_run_count_as_one():
    record = experiment("synthetic", "completion", METHODS, [])
    rows = [
        row(record, "LRF", "rank", value, seed=seed, item=item)
        for seed, values in enumerate([[0.0, 2.0], [5.0, 5.0], [9.0, 11.0]])
        for item, value in enumerate(values)
    ]
    (spread,) = summarize(rows).values()
    assert (spread.median, spread.seeds) == (5.0, 3)


def test_rates_that_differ_by_rounding_are_the_same():
    record = experiment("synthetic", "completion", METHODS, [])
    rows = [
        row(record, "LRF", "rank", 1, rate=rate, seed=i) for i, rate in enumerate([0.3, 0.1 + 0.2])
    ]
    summary = summarize(rows)
    assert len(summary) == 1
    assert select(summary, rate=0.1 + 0.2) == select(summary, rate=[0.3]) == summary


def test_the_last_point_of_each_curve():
    record = experiment("synthetic", "completion", METHODS, [])
    rows = [
        row(record, name, "rank", at, at=float(at)) for name in ("LRF", "VMC") for at in (2, 9, 4)
    ]
    assert [spread.median for spread in last_points(summarize(rows)).values()] == [9, 9]
    assert np.isfinite([group.at for group in summarize(rows)]).all()


def test_methods_are_compared_on_the_trials_that_both_have():
    record, rows = make_study({"LRF": [3, 3], "hirank": [1, 1]})
    record.claims = [LOWER | {"statement": "", "measure": "relative error"}]
    more = [
        r | {"value": 9.0, "seed": 10 + i}
        for r in rows
        if r["method"] == "hirank"
        for i in range(9)
    ]

    assert judge(record, rows + more) == judge(record, rows)
