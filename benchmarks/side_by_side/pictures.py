"""Pictures of the results: mean ranks with critical difference; every set in small multiples."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from summary import brief, cliques, spread

mpl.use("Agg")
import matplotlib.pyplot as plt

OURS = "hirank"
# Two hues of Okabe and Ito's, each dark and light: distinct by lightness alone as well.
COLORS = {True: ("#D55E00", "#F2B78F"), False: ("#4C6A80", "#B4C3CE")}


def difference_plot(mean_ranks: pd.Series, difference: float, caption: str) -> plt.Figure:
    """Mean ranks on a line, best at the left; bars join those that do not differ."""
    ordered = mean_ranks.sort_values()
    groups = cliques(ordered, difference)
    left = -(-len(ordered) // 2)
    low, high = 1, len(ordered)
    top, bars, step = 0.0, -0.45 - 0.22 * len(groups), 0.42
    figure, axes = plt.subplots(figsize=(8.4, 1.7 + 0.32 * left + 0.16 * len(groups)))
    axes.hlines(top, low, high, color="0.2", lw=1.2)
    for tick in range(low, high + 1):
        axes.vlines(tick, top, top + 0.12, color="0.2", lw=1.2)
        axes.text(tick, top + 0.18, str(tick), ha="center", va="bottom", fontsize=10)
    for place, (solver, rank) in enumerate(ordered.items()):
        on_left = place < left
        line = bars - step * (place if on_left else len(ordered) - 1 - place) - 0.1
        edge, side = (low - 0.15, "right") if on_left else (high + 0.15, "left")
        ours = solver == OURS
        style = {"color": COLORS[True][0] if ours else "0.35", "lw": 2.4 if ours else 1.1}
        axes.plot([rank, rank, edge], [top, line, line], solid_joinstyle="miter", **style)
        axes.plot(rank, top, "o", color=style["color"], ms=7 if ours else 5, zorder=3)
        name = f"{solver}  {rank:.2f}" if on_left else f"{rank:.2f}  {solver}"
        axes.text(
            edge + (-0.06 if on_left else 0.06),
            line,
            name,
            ha=side,
            va="center",
            fontsize=11,
            color=style["color"] if ours else "0.1",
            weight="bold" if ours else "normal",
        )
    for number, (first, last) in enumerate(groups):
        height = -0.32 - 0.22 * number
        ends = ordered[first] - 0.04, ordered[last] + 0.04
        axes.hlines(height, *ends, color="0.1", lw=4.5, capstyle="round", zorder=4)
    axes.hlines(top + 0.75, low, low + difference, color="0.2", lw=1.6)
    axes.vlines([low, low + difference], top + 0.67, top + 0.83, color="0.2", lw=1.6)
    label = f"critical difference {difference:.2f}"
    axes.text(low + difference + 0.1, top + 0.75, label, va="center", fontsize=10)
    axes.set_title(caption, fontsize=11, loc="center")
    axes.set_xlim(low - 0.42 * (high - low), high + 0.42 * (high - low))
    axes.axis("off")
    figure.tight_layout()
    return figure


def small_multiples(table: pd.DataFrame, pattern: str) -> plt.Figure:
    """A panel for each set: rmse over that of the column mean, a bar for each solver and rate."""
    part = table[table["pattern"] == pattern]
    score = spread(part)
    ratio = score.div(score["mean"], axis=0)
    why = spread(part.assign(why=part["failure"].map(brief)), "why").fillna("not run")
    names = [name for name in score if name != "mean"]
    sets = list(dict.fromkeys(part["set"]))
    columns = min(4, len(sets))
    lines = -(-len(sets) // columns)
    figure, grid = plt.subplots(
        lines,
        columns,
        figsize=(2.75 * columns + 1.6, (0.27 * len(names) + 0.75) * lines + 0.9),
        squeeze=False,
        sharey=True,
    )
    for axes, name in zip(grid.flat, sets, strict=False):
        _panel(axes, ratio.loc[name, names].sort_index(), why.loc[name])
        axes.set_title(name, fontsize=11)
    for axes in grid.flat[len(sets) :]:
        axes.axis("off")
    for axes in grid[:, 0]:
        axes.set_yticks(range(len(names)), names, fontsize=10)
        axes.get_yticklabels()[0].set_weight("bold" if names[0] == OURS else "normal")
    grid[0, 0].invert_yaxis()
    _legend(figure, sorted(score.index.get_level_values("rate").unique()), names, pattern)
    return figure


def _panel(axes: plt.Axes, ratio: pd.DataFrame, why: pd.DataFrame) -> None:
    """Ratios of one set, and reasons where there is none: rates x solvers."""
    fine = ratio.to_numpy(dtype=float)
    fine = fine[np.isfinite(fine)]
    low = 0.85 * min(fine.min(initial=0.75), 0.75)
    high = min(1.25 * max(fine.max(initial=1.0), 1.05), 3.0)  # a peer that diverges would take all
    thick = 0.8 / len(ratio)
    for shade, (rate, values) in enumerate(ratio.iterrows()):
        for place, (solver, value) in enumerate(values.items()):
            height = place - 0.4 + thick * (shade + 0.5)
            color = COLORS[solver == OURS][min(shade, 1)]
            if np.isfinite(value):
                axes.barh(height, min(value, high) - 1, thick, left=1, color=color)
            else:
                text = why.loc[rate, solver]
                axes.text(0.97, height, text, ha="right", va="center", fontsize=6.5, color="0.4")
            if np.isfinite(value) and value > high:
                axes.text(
                    high / 1.03,
                    height,
                    f"{value:.2g}",
                    ha="right",
                    va="center",
                    fontsize=6.5,
                    color="white" if shade == 0 else "black",
                )
    axes.axvline(1, color="0.2", lw=1)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    places = [each for each in _ticks(high / low) if low <= each <= high]
    axes.set_xticks(places, [f"{each:g}" for each in places], fontsize=9)
    axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.grid(axis="x", color="0.88", lw=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _ticks(range_ratio: float) -> tuple[float, ...]:
    if range_ratio < 4:
        return (0.4, 0.5, 0.6, 0.8, 1, 1.5, 2)
    if range_ratio < 30:
        return (0.05, 0.1, 0.2, 0.5, 1, 2)
    return (0.0001, 0.001, 0.01, 0.1, 1)


def _legend(figure: plt.Figure, rates: list[float], names: list[str], pattern: str) -> None:
    ours = OURS in names
    patches = [
        mpl.patches.Patch(color=COLORS[False][min(shade, 1)], label=f"{rate:.0%} missing")
        for shade, rate in enumerate(rates)
    ]
    if ours:
        patches.append(mpl.patches.Patch(color=COLORS[True][0], label=OURS))
    height = figure.get_size_inches()[1]
    figure.legend(
        handles=patches, loc="upper right", ncols=len(patches), frameon=False, fontsize=10
    )
    figure.suptitle(
        f"Entries missing: {pattern}", x=0.01, y=1 - 0.1 / height, ha="left", va="top", fontsize=13
    )
    figure.supxlabel(
        "RMSE over missing entries / RMSE of the column mean (log scale): further left is better",
        fontsize=10,
    )
    figure.tight_layout()
