"""Numbers from the table of results: medians over seeds, comparisons, ranks, Markdown.

A cell is a set with a pattern and a rate. The score of a solver in a cell is the median of its
rmse over seeds; a run that failed counts as infinitely bad.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range

CELL = ["set", "pattern", "rate"]
LINEAR = ["soft-impute", "iterative ridge"]
ORDER = ["hirank", "iterative extra-trees", "miceforest", "iterative ridge", "gcimpute"]
ORDER += ["soft-impute", "cmfrec", "k-NN", "mean"]
"""In which solvers are shown; others follow."""
CLOCK = "iterative extra-trees"
"""The solver that times are compared with."""


def read(path: Path) -> pd.DataFrame:
    """All runs; of a cell that was run again the last one."""
    runs = pd.read_csv(path, dtype={"failure": str}).fillna({"failure": ""})
    runs["score"] = runs["rmse"].where(runs["failure"] == "", np.inf)
    return runs.drop_duplicates([*CELL, "seed", "solver"], keep="last")


def medians(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each cell and solver, small sets first."""
    lines = []
    for key, part in runs.groupby([*CELL, "solver"], sort=False):
        fine = part[part["failure"] == ""]
        lines.append(
            dict(zip([*CELL, "solver"], key, strict=True))
            | {
                "score": part["score"].median(),
                "seeds": len(fine),
                "runs": len(part),
                "failure": next((text for text in part["failure"] if text), ""),
                "seconds": fine["seconds"].median(),
                "cpu_seconds": fine["cpu_seconds"].median(),
                "added_mb": (fine["peak_mb"] - fine["base_mb"]).median(),
            }
        )
    size = (runs["rows"] * runs["columns"]).groupby(runs["set"]).max()
    table = pd.DataFrame(lines)
    return table.sort_values(
        ["pattern", "set", "rate"],
        key=lambda values: values.map(size) if values.name == "set" else values,
        kind="stable",
    )


def spread(table: pd.DataFrame, values: str = "score") -> pd.DataFrame:
    """Cells x solvers; NaN where a solver was not run."""
    wide = table.set_index([*CELL, "solver"])[values].unstack("solver", sort=False)
    names = [name for name in ORDER if name in wide]
    names += [name for name in wide if name not in names]
    return wide.loc[table.set_index(CELL).index.unique(), names]


def standings(table: pd.DataFrame) -> pd.DataFrame:
    """How each solver fares over all cells that it was run in.

    Best and near best are among all solvers that were run in a cell. Ratios and costs leave out
    cells that failed; there is a column for those.
    """
    score, cpu, wall = (spread(table, name) for name in ("score", "cpu_seconds", "seconds"))
    best = score.min(axis=1)
    lines = {}
    for solver in score:
        run = score[solver].dropna()
        fine = run[np.isfinite(run)]
        line = {
            "cells": len(run),
            "best": int((run <= best[run.index]).sum()),
            "within 3 %": int((run <= 1.03 * best[run.index]).sum()),
            "failed": len(run) - len(fine),
            "median ratio to best": (fine / best[fine.index]).median(),
        }
        if set(LINEAR) <= set(score):
            linear = score.loc[fine.index, LINEAR].min(axis=1)
            line["worst ratio to linear"] = (fine / linear).max()
        if CLOCK in score:
            line["CPU time"] = (cpu[solver] / cpu[CLOCK]).median()
            line["wall time"] = (wall[solver] / wall[CLOCK]).median()
        line["added MB"] = table.loc[table["solver"] == solver, "added_mb"].median()
        lines[solver] = line
    return pd.DataFrame(lines).T.sort_values("median ratio to best")


def ranks(score: pd.DataFrame) -> pd.DataFrame:
    """Ranks of the solvers in each cell, 1 = best; those that failed share the last ones.

    Cells in which a solver was not run are left out.
    """
    return score.dropna().rank(axis=1)


def critical_difference(solvers: int, blocks: int, level: float = 0.05) -> float:
    """Nemenyi: mean ranks over `blocks` that differ by less may do so by chance."""
    quantile = float(studentized_range.ppf(1 - level, solvers, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(solvers * (solvers + 1) / (6 * blocks))


def friedman(ranked: pd.DataFrame) -> float:
    """p-value of "all solvers are alike", a set being one block: its cells are no new evidence."""
    by_set = ranked.groupby("set").mean()
    if len(by_set.columns) < 3 or len(by_set) < 2:
        return math.nan
    return float(friedmanchisquare(*by_set.to_numpy().T).pvalue)


def cliques(mean_ranks: pd.Series, difference: float) -> list[tuple[str, str]]:
    """First and last of each largest group of solvers that differ by less than `difference`."""
    ordered = mean_ranks.sort_values()
    found, reach = [], -1
    for first, low in enumerate(ordered):
        last = int((ordered - low < difference).to_numpy().nonzero()[0].max())
        if last > max(first, reach):  # not alone, and not inside of the group before
            found.append((ordered.index[first], ordered.index[last]))
            reach = last
    return found


def markdown(lines: pd.DataFrame, number: str = ".3g") -> str:
    """A data frame of numbers and text, with its index, as a Markdown table."""
    head = [*map(str, lines.index.names), *map(str, lines.columns)]
    rows = [head, ["---"] * len(lines.index.names) + ["---:"] * len(lines.columns)]
    for key, values in zip(lines.index, lines.to_numpy(dtype=object), strict=True):
        labels = key if isinstance(key, tuple) else (key,)
        rows.append(
            [_cell(label, ".0%") for label in labels] + [_cell(each, number) for each in values]
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(value: float | str, number: str) -> str:
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return ""
    return str(int(value)) if value == int(value) else format(value, number)


def brief(failure: str) -> str:
    """For where there is little room."""
    over = failure.startswith("more than")
    return failure.replace("more than", ">") if over else "failed"


def score_table(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Medians as text, the best of each cell in bold, and notes that explain failures.

    (1) after a number is how many seeds it comes from, where not from all.
    """
    best = table.groupby(CELL)["score"].transform("min")
    most, notes, entries = int(table["runs"].max()), [], []
    for row, lowest in zip(table.itertuples(), best, strict=True):
        if np.isfinite(row.score):
            entry = f"{row.score:.3f}" if row.score < 100 else f"{row.score:.2g}"
            entry = f"**{entry}**" if row.score <= lowest else entry
            entry += f" ({row.seeds})" if row.seeds < most else ""
        else:
            entry = brief(row.failure)
            if entry == "failed":
                reason = f"{row.solver}: {row.failure}"
                notes += [] if reason in notes else [reason]
                entry += f" [{notes.index(reason) + 1}]"
        entries.append(entry)
    text = spread(table.assign(entry=entries), "entry").fillna("not run")
    return text, notes
