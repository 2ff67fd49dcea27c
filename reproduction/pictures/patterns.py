"""Which entries are missing: black ones are; features go down, samples across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hirank._typing import Array
from reproduction.pictures import style
from reproduction.summary import Row

MOST = 1200
"""Samples up to which each is a column of the picture; of more, the first are drawn."""


def patterns(experiment: Any, rows: Sequence[Row], picture: Mapping[str, Any]) -> Any:
    """One over another, the patterns of the first seed at the lowest rate (or `rate`).

    From the measure "hole": the length of a run of missing samples, from sample `at` on, in feature
    `item`. `samples` says how many samples are drawn, from the first on.
    """
    mine = [row for row in rows if row["measure"] == "hole" and not row["failure"]]
    if not mine:
        return None
    seed = min(row["seed"] for row in mine)
    rate = round(picture.get("rate", min(row["rate"] for row in mine)), 9)
    mine = [row for row in mine if row["seed"] == seed and round(row["rate"], 9) == rate]
    names = list(dict.fromkeys(row["pattern"] for row in mine))
    drawn = style.figure(2.0 * len(names) + 0.3)
    axes = drawn.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
    for ax, name in zip(axes, names, strict=True):
        missing = _table([row for row in mine if row["pattern"] == name])
        share = missing.mean()
        missing = missing[:, : picture.get("samples", MOST)]
        ax.imshow(missing, cmap="gray_r", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        ax.set_title(f"{style.panel_title(name)}, {100 * share:.3g} % in all", loc="left")
        ax.set_ylabel("feature")
        ax.grid(visible=False)
        ax.spines[["top", "right"]].set_visible(True)
    axes[-1].set_xlabel("sample")
    return drawn


def _table(rows: Sequence[Row]) -> Array:
    """1 where missing: features x samples."""
    samples = max(int(row["at"] + row["value"]) for row in rows)
    missing = np.zeros((max(row["item"] for row in rows) + 1, samples))
    for row in rows:
        first = int(row["at"])
        missing[row["item"], first : first + int(row["value"])] = 1
    return missing
