import re
from dataclasses import replace

import pytest

from reproduction.page import write_page
from reproduction.tests.synthetic_results import (
    CASES,
    EXPERIMENTS,
    OFFLINE,
    RECOVERY,
    TIMES,
    completion,
    row,
)

BEATS = {
    "statement": "KFMC beats low-rank methods",
    "kind": "lower",
    "measure": "relative error",
    "methods": ["KFMC (RBF)"],
    "than": ["LRF"],
    "paper": "Figure 2, by far",
}
SLOW = {
    "statement": "KFMC is a thousand times faster",
    "kind": "ratio",
    "at_least": 1000,
    "measure": "fit seconds",
    "methods": ["KFMC (RBF)"],
    "than": ["LRF"],
    "explanation": "It was never\nclaimed",
}


@pytest.fixture
def study():
    record, rows = completion(
        "synthetic-offline",
        [OFFLINE[0], OFFLINE[5], OFFLINE[6]],
        [RECOVERY | {"caption": "Errors of three methods"}, TIMES],
        data=CASES[:1],
    )
    record.claims = [BEATS, SLOW]
    record.methods[1] = replace(record.methods[1], grid={"beta": [0.001, 0.0001]})
    return record, rows


def page(studies, tmp_path, *, figures=("synthetic-offline-1.png",)):
    folder = tmp_path / "results"
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name in figures:
        (folder / "figures" / name).touch()
    path = folder / "README.md"
    write_page(studies, folder, path)
    return path.read_text(encoding="utf-8")


def test_claims_come_first_with_verdicts_and_links(study, tmp_path):
    text = page([study], tmp_path)
    assert text.index("## Claims") < text.index("## synthetic-offline")
    assert "2 claims: 1 yes, 0 partly, 1 no, 0 not run." in text
    (line,) = [line for line in text.splitlines() if line.startswith("| KFMC beats")]
    assert "Figure 2, by far" in line
    assert "It holds in 7 of 7 cases." in line
    assert line.endswith("| **yes** | [synthetic-offline](#synthetic-offline) |")
    assert "written by `python -m reproduction`" in text


def test_claims_about_hirank_are_separate(study, tmp_path):
    record, rows = study
    record.claims = [BEATS, SLOW | {"ours": True}]
    text = page([(record, rows)], tmp_path)
    theirs, ours = text.split("## hirank beside it")
    assert "1 claim: 1 yes" in theirs
    assert BEATS["statement"] in theirs
    assert ours.index(SLOW["statement"]) < ours.index("## synthetic-offline")


def test_a_section_describes_its_runs(study, tmp_path):
    text = page([study], tmp_path)
    assert "KFMC (RBF) (beta 0.001 / 0.0001); hirank." in text
    # 3 methods x 7 rates x 5 seeds, each of 1.8 s.
    assert "5 trials (settings searched in 0). 105 runs, 3 min 9 s of CPU time." in text
    assert "on a processor (2 cores); 2026-11-16." in text
    assert "`python -m reproduction synthetic-offline`" in text


def test_only_existing_figures_are_linked(study, tmp_path):
    text = page([study], tmp_path)
    assert re.findall(r"!\[(.*?)\]\((.*?)\)", text) == [
        ("Errors of three methods", "figures/synthetic-offline-1.png")
    ]
    assert "*Errors of three methods*" in text


def test_medians_with_the_best_in_bold(study, tmp_path):
    record, rows = study
    rows = [r | {"value": {"LRF": 0.5, "hirank": 0.125}.get(r["method"], 0.25)} for r in rows]
    text = page([(record, rows)], tmp_path)
    assert "| missing | LRF | KFMC (RBF) | hirank |" in text
    assert "| 10 % | 0.5 | 0.25 | **0.125** |" in text
    assert text.count("**0.125**") == 14  # of errors and of times


def test_disagreement_is_explained(study, tmp_path):
    text = page([study], tmp_path)
    (line,) = [line for line in text.splitlines() if line.startswith("- Does not hold")]
    assert line.startswith("- Does not hold: KFMC is a thousand times faster. The time of the fit")
    assert line.endswith("It was never claimed.")
    assert "- Holds: KFMC beats low-rank methods." in text


def test_failures_absent_methods_and_missed_bands_are_listed(study, tmp_path):
    record, rows = study
    rows = [r for r in rows if r["method"] != "LRF"]
    rows += [row(record, "hirank", "", float("nan"), failure="MemoryError: a | b", seed=9)]
    record.expected = [{"method": "hirank", "measure": "fit seconds", "rate": 0.1, "to": 0.001}]
    text = page([(record, rows)], tmp_path)
    assert "No numbers of LRF." in text
    assert r"hirank: 1 of 36 runs (MemoryError: a \| b)" in text
    assert "expected at most 0.001." in text
    assert "0 yes, 0 partly, 0 no, 2 not run" in text


def test_experiments_without_rows_are_named_only(study, tmp_path):
    record, _ = EXPERIMENTS["passes"]()
    text = page([study, (record, [])], tmp_path)
    assert "Not run yet, or without data: `passes`." in text
    assert "## passes" not in text


def test_long_tables_are_folded_and_long_curves_thinned(tmp_path):
    text = page([EXPERIMENTS["momentum"]()], tmp_path)
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(table) == 2 + 8
    assert table[0].startswith("| iteration |")
    assert "**" not in "".join(table)  # objectives of different kernels cannot be compared
    assert "<details>" not in text
    assert "<details>" in page([EXPERIMENTS["synthetic-ose"]()], tmp_path)


def test_exponents_of_growth_have_a_table_with_those_of_the_paper(tmp_path):
    record, rows = EXPERIMENTS["complexity"]()
    record.figures[0] |= {"paper_exponents": {"peak MB": {"VMC": "2"}}}
    text = page([(record, rows)], tmp_path)
    assert "| method | time of the fit (s) | peak of memory (MB) |" in text
    assert re.search(r"\| VMC \| 2\.\d\d \| 1\.\d\d \(2\) \|", text)


def test_lowest_errors_have_a_section(study, tmp_path):
    record, rows = study
    assert "## Lowest errors" not in page([study], tmp_path)
    record.claims = [BEATS | {"methods": ["hirank"], "than": ["LRF"], "count_cells": True}]
    text = page([(record, rows)], tmp_path)
    assert "## Lowest errors" in text
    assert "**7 of 7**" in text


def test_a_quick_run_is_marked(study, tmp_path):
    assert "quick run" not in page([study], tmp_path)
    study[0].quick = True
    text = page([study], tmp_path)
    assert "quick run" in text
    assert "`python -m reproduction synthetic-offline --quick`" in text


def test_a_setting_that_is_given_leaves_the_grid(study, tmp_path):
    study[0].methods[1].method.settings["beta"] = 0.1
    assert "KFMC (RBF); hirank." in page([study], tmp_path)


def test_curves_are_in_order_at_points_of_most_methods(tmp_path):
    record, rows = EXPERIMENTS["momentum"]()
    gone = [r for r in rows if "eta 0.9" not in r["method"] or r["at"] < 20]
    text = page([(record, gone[::-1])], tmp_path)
    steps = [int(step) for step in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert steps == sorted(steps)
    assert (len(steps), steps[0], steps[-1]) == (8, 1, 298)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_section_and_tables_are_whole(name, tmp_path):
    text = page([EXPERIMENTS[name]()], tmp_path)
    assert f"## {name}\n" in text
    columns = None
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        count = len(re.findall(r"(?<!\\)\|", line))
        assert columns in (None, count)
        columns = count
