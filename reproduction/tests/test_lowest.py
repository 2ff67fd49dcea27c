import pytest

from reproduction.lowest import compare_cells
from reproduction.overview import TITLE, make_lowest, write_overview
from reproduction.tests.synthetic_results import experiment, row
from reproduction.trials import Span, Trials, count_trials, describe_trials

METHODS = [("LRF", "LRF", "paper"), ("VMC", "VMC", "paper"), ("hirank", "Imputer", "hirank")]
CLAIM = {
    "statement": "hirank has the lowest error.",
    "kind": "lower",
    "measure": "relative error",
    "methods": ["hirank"],
    "than": ["LRF", "VMC"],
    "count_cells": True,
}


@pytest.fixture
def study():
    """At 50 % missing hirank is lowest in both trials of VMC, at 70 % VMC is."""
    record = experiment("small", "completion", METHODS, [], rates=[0.5, 0.7], claims=[CLAIM])
    errors = {
        ("LRF", 0.5): [0.5] * 3,
        ("VMC", 0.5): [0.2, 0.3],
        ("hirank", 0.5): [0.1, 0.1, 9.0],
        ("LRF", 0.7): [0.5] * 3,
        ("VMC", 0.7): [0.3, 0.3, 0.3],
        ("hirank", 0.7): [0.4, 0.5, 0.6],
    }
    rows = [
        row(record, method, "relative error", value, rate=rate, seed=seed)
        for (method, rate), values in errors.items()
        for seed, value in enumerate(values)
    ]
    return record, rows


def test_errors_are_compared_on_the_trials_that_all_methods_have(study):
    won, lost = compare_cells(*study)

    assert (won.ours, won.rival, won.theirs, won.trials) == (0.1, "VMC", 0.25, 2)
    assert won.is_lowest
    assert (lost.ours, lost.rival, lost.theirs, lost.trials) == (0.5, "VMC", 0.3, 3)
    assert not lost.is_lowest


def test_an_equal_error_is_not_the_lowest(study):
    record, rows = study
    cells = compare_cells(record, [one | {"value": 0.5} for one in rows])
    assert [cell.is_lowest for cell in cells] == [False, False]


def test_an_experiment_without_a_counted_claim_has_no_cells(study):
    record, rows = study
    record.claims = []
    assert compare_cells(record, rows) == []
    assert list(make_lowest([(record, rows)])) == []


def test_lost_cells_are_listed_with_both_errors(study):
    text = "".join(make_lowest([study]))
    assert "| **1 of 2** |" in text
    assert "| small | one curved surface, 70 % missing | 0.5 | 0.3 | VMC | 3 |" in text
    assert "50 % missing" not in text


def test_the_last_section_of_a_page_is_replaced(study, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nBy hand.\n")

    write_overview([study], page)
    once = page.read_text()
    write_overview([study], page)

    assert page.read_text() == once
    assert once.startswith("# A page\n\nBy hand.\n" + TITLE)
    assert (
        "| small | Figure 2 of the paper | LRF, hirank: 3 trials; VMC: 2 to 3 trials | 17 |" in once
    )


def test_trials_and_searches_are_counted():
    record = experiment("small", "completion", METHODS[:2], [])
    record.methods[0].grid.update(rank=[1, 2])
    found = {
        "LRF": [(0, 1, False), (0, 2, True), (1, 2, True)],
        "VMC": [(0, 0, True), (1, 0, True)],
    }
    rows = [
        row(record, method, "error", 1.0, seed=seed, settings=f"{rank}", selected=selected)
        for method, runs in found.items()
        for seed, rank, selected in runs
    ]

    trials = count_trials(record, rows)

    assert trials == {"LRF": Trials(Span(2, 2), Span(1, 1)), "VMC": Trials(Span(2, 2), None)}
    assert describe_trials(record, rows) == "2 trials (settings searched in 1)"
    searched = [*rows, row(record, "LRF", "error", 1.0, seed=1, settings="1", selected=False)]
    assert describe_trials(record, searched) == "2 trials (settings searched in each)"


def test_a_cell_without_a_run_has_no_trials(study):
    record, rows = study
    part = [one for one in rows if one["method"] != "LRF" or one["rate"] == 0.5]
    assert count_trials(record, part)["LRF"].ran == Span(0, 3)
    none = [one for one in rows if one["method"] != "LRF"]
    assert describe_trials(record, none) == "LRF: 0 trials; VMC: 2 to 3 trials; hirank: 3 trials"
