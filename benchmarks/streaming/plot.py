"""Pictures of a stored table: error over samples seen, one panel per stream.

Medians over seeds of the error in the last few batches; log scale.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from table import read

mpl.use("Agg")
import matplotlib.pyplot as plt

# Okabe and Ito's colors, and a dash of its own for each, so that neither has to carry it alone.
STYLES = {
    "hirank": ("#000000", "-", 2.6),
    "OnlineKFMC": ("#000000", (0, (1, 1)), 1.6),
    "online factors": ("#0072B2", "-", 1.6),
    "GROUSE": ("#56B4E9", (0, (5, 1)), 1.6),
    "gcimpute": ("#D55E00", "-", 1.6),
    "gcimpute live": ("#D55E00", (0, (1, 1)), 1.6),
    "iterative ridge": ("#009E73", (0, (5, 1)), 1.6),
    "iterative trees": ("#009E73", (0, (1, 1)), 1.6),
    "k-NN": ("#CC79A7", "-", 1.6),
    "last value": ("#E69F00", (0, (3, 1, 1, 1)), 1.6),
    "mean": ("#999999", (0, (1, 1.5)), 1.6),
}
REAL = ("mocap", "gas drift", "air quality")


def curve(runs: pd.DataFrame, top: str, bottom: str, batches: int) -> pd.Series:
    """Median over seeds of sqrt(sum top / sum bottom) over the last few batches."""
    runs = runs[runs["batch"] > 0]
    tops, bottoms = (
        runs.pivot(index="samples_seen", columns="seed", values=name)
        .rolling(batches, min_periods=1)
        .sum()
        for name in (top, bottom)
    )
    return np.sqrt(tops / bottoms).median(axis=1)


def panel(axes: plt.Axes, table: pd.DataFrame, stream: str, batches: int) -> None:
    real = stream in REAL
    sums = ("scaled_squared_error", "missing") if real else ("squared_error", "squared_truth")
    lows, highs = [], []
    for method, (color, dash, width) in STYLES.items():
        runs = table[(table["method"] == method) & (table["failure"] == "")]
        if len(runs):
            line = curve(runs, *sums, batches)
            front = 3 if method == "hirank" else 2
            axes.plot(line, color=color, ls=dash, lw=width, label=method, zorder=front)
            lows.append(line.min())
            highs.append(line.quantile(0.9))
    axes.set_yscale("log")
    # A peer that diverges would flatten all others: it leaves the panel at the top instead.
    axes.set_ylim(0.7 * min(lows), min(1.5 * max(highs), 4))
    axes.set_title(f"{stream}, {table['missing_rate'].iloc[0]:.0%} missing", fontsize=10)
    axes.set_ylabel("RMSE / std" if real else "relative error")
    axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 3, 5), numticks=20))
    axes.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    axes.grid(color="0.9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def picture(table: pd.DataFrame, batches: int) -> plt.Figure:
    parts = list(table.groupby(["stream", "missing_rate"], sort=False))
    columns = min(3, len(parts))
    lines = -(-len(parts) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(3.9 * columns, 2.9 * lines + 0.6), squeeze=False
    )
    for axes, ((stream, _), part) in zip(grid.flat, parts, strict=False):
        panel(axes, part, stream, batches)
        axes.set_xlabel("samples seen")
    handles = {}
    for axes in grid.flat[: len(parts)]:
        handles |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    names = [name for name in STYLES if name in handles]
    free = grid.flat[len(parts) :]
    for axes in free:
        axes.axis("off")
    place = {"loc": "center"} if len(free) else {"loc": "lower center", "ncols": 4}
    (free[0] if len(free) else figure).legend(
        [handles[name] for name in names], names, frameon=False, handlelength=3.5, **place
    )
    figure.tight_layout(rect=(0, 0 if len(free) else 0.7 / (2.9 * lines + 0.6), 1, 1))
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--out", type=Path, default=Path("streaming.png"))
    parser.add_argument("--batches", type=int, default=5, help="how many to smooth over")
    args = parser.parse_args()
    picture(read(args.csv), args.batches).savefig(args.out, dpi=150)
