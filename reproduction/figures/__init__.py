"""Figures of an experiment, drawn from its table: PNG and SVG, the same bytes for the same rows.

Pyplot is not used, and the settings of matplotlib are restored afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.config import Experiment
from reproduction.figures import style
from reproduction.figures.bars import bars
from reproduction.figures.cubic import cubic
from reproduction.figures.curves import curves
from reproduction.figures.growth import growth
from reproduction.figures.lines import lines, threshold
from reproduction.figures.patterns import patterns
from reproduction.summary import Row

__all__ = ["KINDS", "draw"]

KINDS: dict[str, Callable[[Experiment, Sequence[Row], Mapping[str, Any]], Any]] = {
    "lines": lines,
    "bars": bars,
    "curves": curves,
    "cubic": cubic,
    "patterns": patterns,
    "growth": growth,
    "threshold": threshold,
}
"""Values of `kind` in a [[figure]]; each returns a figure, or None if there is nothing to draw."""


def draw(experiment: Experiment, rows: Sequence[Row], folder: str | Path) -> list[Path]:
    """Draw the figures of an experiment: NAME-1.png and NAME-1.svg, NAME-2.png ...

    Parameters
    ----------
    experiment : Experiment
        Its ``figures`` are drawn.
    rows : list of dict
        The tidy table.
    folder : path
        Created if it does not exist.

    Returns
    -------
    paths : list of Path
        The files. A figure without rows is not written.
    """
    for spec in experiment.figures:
        if spec.get("kind") not in KINDS:
            raise ValueError(
                f"{experiment.name}: kind of a figure must be one of {', '.join(KINDS)}; "
                f"got {spec.get('kind')!r}."
            )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with style.use_style():
        for place, spec in enumerate(experiment.figures, start=1):
            figure = KINDS[spec["kind"]](experiment, rows, spec)
            if figure is not None:
                written += style.save_figure(figure, folder / f"{experiment.name}-{place}")
    return written
