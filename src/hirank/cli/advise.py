"""``hirank advise``: how well the missing values of a table can be imputed."""

from __future__ import annotations

from typing import Any

from hirank.cli.fit_table import read
from hirank.cli.reporter import Told


def run(
    *,
    table: str,
    missing: list[str] | None,
    ids: list[str] | None,
    max_time: float | None,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Fit an Imputer, and print its error and the rows and columns out of reach."""
    from hirank.theory import advise

    told = Told(as_json=as_json)
    given = read(table, told, missing=missing, ids=ids, **reading)
    with told.warnings():
        advice = advise(given.frame, max_time=max_time, random_state=seed)
    told.result(advice.to_dict(), str(advice))
