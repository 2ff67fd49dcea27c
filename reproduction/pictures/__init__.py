"""Pictures of an experiment, drawn from its table: PNG and SVG, the same bytes for the same rows.

Nothing here knows pyplot: figures are made and written one by one, and settings of matplotlib are
as before when a picture is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.pictures import style
from reproduction.pictures.bars import bars
from reproduction.pictures.cubic import cubic
from reproduction.pictures.curves import curves
from reproduction.pictures.growth import growth
from reproduction.pictures.lines import lines, threshold
from reproduction.pictures.patterns import patterns
from reproduction.summary import Row

__all__ = ["KINDS", "draw"]

KINDS: dict[str, Callable[[Any, Sequence[Row], Mapping[str, Any]], Any]] = {
    "lines": lines,
    "bars": bars,
    "curves": curves,
    "cubic": cubic,
    "patterns": patterns,
    "growth": growth,
    "threshold": threshold,
}
"""What `kind` of a [[picture]] may be; each gives a figure, or None if there is nothing to draw."""


def draw(experiment: Any, rows: Sequence[Row], folder: str | Path) -> list[Path]:
    """Draw the pictures of an experiment: NAME-1.png and NAME-1.svg, NAME-2.png ...

    Parameters
    ----------
    experiment : Experiment
        Its ``pictures`` say what to draw.
    rows : list of dict
        The tidy table.
    folder : path
        Made if it is not there.

    Returns
    -------
    paths : list of Path
        What was written. A picture of which no row is there is not.
    """
    for picture in experiment.pictures:
        if picture.get("kind") not in KINDS:
            raise ValueError(
                f"{experiment.name}: there is no kind of picture {picture.get('kind')!r}; "
                f"there are: {', '.join(KINDS)}."
            )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with style.styled():
        for place, picture in enumerate(experiment.pictures, start=1):
            drawn = KINDS[picture["kind"]](experiment, rows, picture)
            if drawn is not None:
                written += style.save(drawn, folder / f"{experiment.name}-{place}")
    return written
