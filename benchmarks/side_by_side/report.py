"""Tables and pictures of a stored run: Markdown to standard output, pictures into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from data_sets import PATTERNS
from summary import (
    critical_difference,
    friedman,
    markdown,
    medians,
    ranks,
    read,
    score_table,
    spread,
    standings,
)


def text(table: pd.DataFrame) -> str:
    """All tables, in Markdown."""
    parts = ["## Standings", markdown(standings(table).rename_axis("solver")), rank_text(table)]
    wide, notes = score_table(table)
    for pattern in dict.fromkeys(table["pattern"]):
        part = wide.xs(pattern, level="pattern")
        parts += [f"## Median RMSE, entries missing: {pattern}", markdown(part)]
    parts += [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]
    return "\n\n".join(parts)


def rank_text(table: pd.DataFrame) -> str:
    ranked = ranks(spread(table))
    if len(ranked) == 0 or len(ranked.columns) < 2:
        return "No cell in which every solver was run: no ranks."
    sets = ranked.index.get_level_values("set").nunique()
    order = ", ".join(f"{name} {mean:.2f}" for name, mean in ranked.mean().sort_values().items())
    return (
        f"Mean ranks over {len(ranked)} cells of {sets} sets: {order}. Friedman, a set being one "
        f"block: p = {friedman(ranked):.2g}. Nemenyi critical difference at 5 %: "
        f"{critical_difference(len(ranked.columns), sets):.2f} with a set as a block, "
        f"{critical_difference(len(ranked.columns), len(ranked)):.2f} with a cell."
    )


def draw(table: pd.DataFrame, folder: Path) -> None:
    from pictures import difference_plot, small_multiples

    folder.mkdir(parents=True, exist_ok=True)
    ranked = ranks(spread(table))
    if len(ranked) and len(ranked.columns) > 1:
        sets = ranked.index.get_level_values("set").nunique()
        difference = critical_difference(len(ranked.columns), sets)
        caption = f"Mean rank of the RMSE over {len(ranked)} cells of {sets} sets (1 is best)"
        figure = difference_plot(ranked.mean(), difference, caption)
        figure.savefig(folder / "ranks.png", dpi=150)
    for pattern in PATTERNS:
        if "mean" in set(table.loc[table["pattern"] == pattern, "solver"]):
            small_multiples(table, pattern).savefig(folder / f"sets_{pattern}.png", dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--pictures", type=Path, help="folder for them; none without")
    parser.add_argument("--without", default="", help="solvers to leave out, between commas")
    args = parser.parse_args()
    runs = read(args.csv)
    results = medians(
        runs[~runs["solver"].isin([name.strip() for name in args.without.split(",")])]
    )
    print(text(results))
    if args.pictures:
        draw(results, args.pictures)
