"""Where recovery starts, beside where it starts in theory."""

from __future__ import annotations

from collections.abc import Iterator

from reproduction.cells import Cell, Measurement
from reproduction.tasks import completion, ranks


def run(cell: Cell) -> Iterator[Measurement]:
    """Impute the table of a cell; "recovered" is 1 if the missing error is small, else 0.

    Small is options["recovered"], by default 0.05.
    """
    limit = float(cell.options.get("recovered", 0.05))
    for found in completion.run(cell):
        yield found
        if found.measure == "missing error":
            yield Measurement("recovered", float(found.value <= limit))
    yield from ranks.measure_rates(cell)
