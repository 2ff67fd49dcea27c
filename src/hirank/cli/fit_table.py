"""From a file and options to a table and a fitted model: what complete, fit and compare share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hirank._typing import Array
from hirank.cli.dates import times_of
from hirank.cli.errors import NOTHING_FILLED, USAGE, Failure
from hirank.cli.intervals import BlankRows
from hirank.cli.reporter import Told
from hirank.io import Table, TableFile, open_table

if TYPE_CHECKING:
    from hirank import Imputer

MARKED, FAR_OFF = 3, 1.5
"""Cells with the same value, and its distance from all others in ranges of these (5 to 95 %)."""
ROWS = "rows"
"""What --time says if there is no column of times."""


@dataclass(frozen=True)
class Given:
    """A table as read: the columns to fill, and the times of its rows if they are no numbers."""

    file: TableFile
    table: Table
    missing: tuple[str, ...] = ()  # what --missing said
    ids: tuple[str, ...] = ()  # what --id said
    dates: Array | None = None  # n; seconds
    time: str | None = None  # the column they are from

    @property
    def frame(self) -> pa.Table:
        """The columns that a model sees, by name."""
        columns = dict(zip(self.table.numeric, self.table.numbers.T, strict=True))
        if self.dates is not None and self.time is not None:
            columns[self.time] = self.dates
        return pa.table(columns)

    @property
    def n_missing(self) -> int:
        return int(np.isnan(self.table.numbers).sum())


def read(
    table: str,
    told: Told,
    *,
    missing: Sequence[str] | None,
    ids: Sequence[str] | None,
    time: str | None = None,
    **options: Any,
) -> Given:
    """Read a table whole, and see that there is something to learn from."""
    apart = tuple(ids or ())
    file = open_table(table, missing=tuple(missing or ()), text=apart, **options)
    unknown = [name for name in (*apart, *([time] if time else [])) if name not in file.names]
    if time == ROWS and ROWS not in file.names:
        unknown.remove(ROWS)
    if unknown:
        raise Failure(
            f"There is no column {_listed(unknown)} in {table}. It has {_listed(file.names)}.",
            USAGE,
        )
    found = file.read()
    if not found.numeric:
        raise Failure(
            f"No column of {table} is numeric, so there is nothing to fill: {_listed(found.text)}."
            + _hint(found)
        )
    if not len(found):
        raise Failure(f"{table} has names but no rows: nothing to learn from.")
    if np.isnan(found.numbers).all():
        raise Failure(
            f"Every numeric cell of {table} is missing: nothing to go by.", NOTHING_FILLED
        )
    _tell_columns(found, told, apart, time)
    dates = None
    if time is not None and time in found.text:
        dates = times_of(found.column(time), time)
    markers = tuple(missing or ())
    return Given(file, found, markers, apart, dates, time if dates is not None else None)


def prepared(
    table: str,
    told: Told,
    *,
    time: str | None,
    max_time: float | None,
    seed: int,
    bounds: Sequence[str] | None,
    integers: str | None,
    max_gap: int | None,
    **reading: Any,
) -> tuple[Given, Imputer]:
    """A table, and Imputer with what the options say, not yet fitted."""
    if max_gap is not None and time is None:
        raise Failure("--max-gap counts rows in order of time: give --time as well.", USAGE)
    if max_time is not None and not max_time > 0:
        raise Failure(f"--max-time is in seconds and must be above 0, not {max_time:g}.", USAGE)
    given = read(table, told, time=time, **reading)
    whole: Any = {None: None, "auto": "auto", "all": True}.get(integers, False)
    if whole is False and integers is not None:
        whole = [_known(name.strip(), given, "--integers") for name in integers.split(",")]
    limits = _bounds(bounds, given)
    if time == ROWS and ROWS not in given.table.names and "time" in given.table.numeric:
        raise Failure(
            "The table has a column 'time': give --time time to go by it, or --id time as well to "
            "take rows as evenly spaced.",
            USAGE,
        )

    from hirank import Imputer

    model = Imputer(
        time=True if time == ROWS and ROWS not in given.table.names else time,
        max_time=max_time,
        random_state=seed,
        bounds=limits,
        integers=whole,
        max_gap=max_gap,
        keep_empty_features=True,
    )
    return given, model


def filled_by(model: Imputer, given: Given, told: Told) -> Array:
    """Fit, and the columns to fill, n x v, completed; NaN where nothing could be said."""
    with told.warnings(), told.fitting(model.max_time):
        filled = np.asarray(model.fit_transform(given.frame), np.float64)
    blank = BlankRows(told)
    blank.see(given.table, given.table.numbers)
    blank.tell()
    return blanked(filled[:, : len(given.table.numeric)], model)


def keep(model: Imputer, path: Path, given: Given) -> None:
    """Save a model, with what stood for a missing value: new tables will have it too."""
    from hirank.estimators.saving import save

    save(model, path, {"missing": list(given.missing)})


def markers_of(path: Path) -> list[str]:
    """What stood for a missing value when a kept model was learned."""
    from hirank.persistence.container import read_header

    notes = read_header(path).get("notes")
    found = notes.get("missing") if isinstance(notes, dict) else None
    return [str(marker) for marker in found] if isinstance(found, list) else []


def blanked(filled: Array, model: Imputer) -> Array:
    """Columns that were empty when the model was learned stay empty."""
    filled[:, ~model.has_values_[: filled.shape[1]]] = np.nan
    return filled


def _bounds(given: Sequence[str] | None, table: Given) -> Any:
    """{column: (low, high)} from [COLUMN=]LOW:HIGH."""
    limits: dict[str, tuple[float | None, float | None]] = {}
    for one in given or ():
        column, _, span = one.rpartition("=")
        low, colon, high = span.partition(":")
        try:
            if not colon:
                raise ValueError
            pair = (float(low) if low.strip() else None, float(high) if high.strip() else None)
        except ValueError:
            raise Failure(
                f"--bounds {one!r} should be LOW:HIGH or COLUMN=LOW:HIGH, e.g. rain=0: or 0:100.",
                USAGE,
            ) from None
        names = [_known(column, table, "--bounds")] if column else table.table.numeric
        limits |= dict.fromkeys(names, pair)
    return limits or None


def _known(name: str, given: Given, option: str) -> str:
    if name not in given.table.numeric:
        raise Failure(
            f"{option}: no numeric column is called {name!r}. There are "
            f"{_listed(given.table.numeric)}.",
            USAGE,
        )
    return name


def _tell_columns(table: Table, told: Told, apart: Sequence[str], time: str | None) -> None:
    left = [name for name in table.text if name not in apart and name != time]
    if left:
        told.note(f"Not numeric, passed through as they are: {_listed(left)}.{_hint(table)}")
    empty = [n for n, x in zip(table.numeric, table.numbers.T, strict=True) if np.isnan(x).all()]
    if empty:
        told.note(f"No value at all, left empty: {_listed(empty)}.")
    marked = [
        f"{value:g} in {count} cells of {name!r}"
        for name, x in zip(table.numeric, table.numbers.T, strict=True)
        for value, count in _markers(x)
    ]
    if marked:
        told.note(
            f"Far from all other values: {', '.join(marked[:6])}"
            f"{' and more' if len(marked) > 6 else ''}. If that means missing, say so with "
            "--missing."
        )


def _markers(x: Array) -> list[tuple[float, int]]:
    """The least or largest value of a column, n, if it recurs far away from the rest."""
    x = x[~np.isnan(x)]
    found = []
    for value in {x.min(), x.max()} if len(x) else ():
        rest = x[x != value]
        count = len(x) - len(rest)
        if count < MARKED or len(rest) < MARKED:
            continue
        low, high = np.quantile(rest, [0.05, 0.95])
        if high > low and np.abs(rest - value).min() > FAR_OFF * (high - low):
            found.append((float(value), count))
    return found


def _hint(table: Table) -> str:
    """Which cells keep a column from being numeric."""
    words = [
        f"{name!r} has {_listed(dict.fromkeys(cell for _, cell in cells))} (line {cells[0][0]})"
        for name, cells in table.types.nearly_numeric.items()
    ]
    if not words:
        return ""
    return f" Mostly numbers: {'; '.join(words)}. If that means missing, say so with --missing."


def _listed(names: Any, most: int = 12) -> str:
    shown = [repr(str(name)) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
