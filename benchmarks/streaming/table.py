"""The table of results: one row per method, stream, seed and batch; everything is read from it.

    squared_error, squared_truth   sums over the batch's missing entries, original units
    scaled_squared_error           the same error in units of each feature's standard deviation
    missing                        how many entries those sums have
    seconds                        completing and learning; batch 0 is the start, with no errors

`python benchmarks/streaming/table.py FILE` prints the summary of a stored table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

RUN = ["stream", "missing_rate", "method"]


def read(path: Path) -> pd.DataFrame:
    text = {"setting": str, "failure": str}
    return pd.read_csv(path, dtype=text).fillna(dict.fromkeys(text, ""))


def merge(path: Path, new: pd.DataFrame) -> pd.DataFrame:
    """The stored table with new runs in place of their old ones, written back."""
    if path.exists():
        old = read(path)
        again = pd.MultiIndex.from_frame(old[RUN]).isin(pd.MultiIndex.from_frame(new[RUN]))
        new = pd.concat([old[~again], new], ignore_index=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    new.to_csv(path, index=False, float_format="%.6g")
    return new


def relative_error(rows: pd.DataFrame) -> float:
    return float(np.sqrt(rows["squared_error"].sum() / rows["squared_truth"].sum()))


def scaled_error(rows: pd.DataFrame) -> float:
    return float(np.sqrt(rows["scaled_squared_error"].sum() / rows["missing"].sum()))


def second_half(rows: pd.DataFrame) -> pd.DataFrame:
    """Batches of the later half of one stream; the one in the middle belongs to it."""
    return rows[rows["samples_seen"] > rows["samples_seen"].max() / 2]


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Medians over seeds: errors of the second half, milliseconds a sample without the start."""
    lines = []
    for key, runs in table.groupby(RUN, sort=False):
        line = dict(zip(RUN, key, strict=True))
        failures = [text for text in runs["failure"].unique() if text]
        each = [rows for _, rows in runs[runs["failure"] == ""].groupby("seed")]
        line |= {"seeds": len(each), "error": np.nan, "in std": np.nan, "ms/sample": np.nan}
        if each:
            halves = [second_half(rows) for rows in each]
            arrived = [rows[rows["batch"] > 0] for rows in each]
            ms = [1e3 * rows["seconds"].sum() / rows["samples"].sum() for rows in arrived]
            line["error"] = np.median([relative_error(half) for half in halves])
            line["in std"] = np.median([scaled_error(half) for half in halves])
            line["ms/sample"] = np.median(ms)
        line["tuned"] = "; ".join(s for s in runs["setting"].unique() if s)
        line["failure"] = "; ".join(failures)
        lines.append(line)
    return pd.DataFrame(lines)


def show(table: pd.DataFrame) -> None:
    lines = summary(table)
    for (stream, missing), part in lines.groupby(RUN[:2], sort=False):
        print(f"\n{stream}, {missing:.0%} missing")
        part = part.drop(columns=RUN[:2]).sort_values("error")
        print(part.to_string(index=False, float_format=lambda value: f"{value:.4g}"))


if __name__ == "__main__":
    show(read(Path(sys.argv[1])))
