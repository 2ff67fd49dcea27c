"""Missing entries, in black; features are rows, samples are columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hirank._typing import Array
from reproduction.config import Experiment
from reproduction.figures import style
from reproduction.summary import Row

MAX_SAMPLES = 1200


def patterns(experiment: Experiment, rows: Sequence[Row], spec: Mapping[str, Any]) -> Any:
    """Draw the patterns of the first seed at the lowest rate (or `rate`), one below the other.

    The measure "gap" is the length of a run of missing entries, from sample `at` on, in feature
    `item`. `samples` is the number of samples to draw, from the first on.
    """
    shown = [row for row in rows if row["measure"] == "gap" and not row["failure"]]
    if not shown:
        return None
    seed = min(row["seed"] for row in shown)
    rate = round(spec.get("rate", min(row["rate"] for row in shown)), 9)
    shown = [row for row in shown if row["seed"] == seed and round(row["rate"], 9) == rate]
    names = list(dict.fromkeys(row["pattern"] for row in shown))
    figure = style.make_figure(2.0 * len(names) + 0.3)
    axes = figure.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
    for ax, name in zip(axes, names, strict=True):
        missing = _table([row for row in shown if row["pattern"] == name])
        share = missing.mean()
        missing = missing[:, : spec.get("samples", MAX_SAMPLES)]
        ax.imshow(missing, cmap="gray_r", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        ax.set_title(f"{style.panel_title(name)}, {100 * share:.3g} % in all", loc="left")
        ax.set_ylabel("feature")
        ax.grid(visible=False)
        ax.spines[["top", "right"]].set_visible(True)
    axes[-1].set_xlabel("sample")
    return figure


def _table(rows: Sequence[Row]) -> Array:
    """Return 1 where an entry is missing, features x samples."""
    samples = max(int(row["at"] + row["value"]) for row in rows)
    missing = np.zeros((max(row["item"] for row in rows) + 1, samples))
    for row in rows:
        first = int(row["at"])
        missing[row["item"], first : first + int(row["value"])] = 1
    return missing
