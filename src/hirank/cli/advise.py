"""``hirank advise``: is this table recoverable, and by what."""

from __future__ import annotations

from typing import Any

from hirank.cli.fit_table import read
from hirank.cli.reporter import Told


def run(
    *,
    table: str,
    missing: list[str] | None,
    ids: list[str] | None,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Read, ask, tell."""
    from hirank.theory import advise

    told = Told(as_json=as_json)
    given = read(table, told, missing=missing, ids=ids, **reading)
    with told.warnings():
        advice = advise(given.frame, random_state=seed)
    told.result(advice.to_dict(), str(advice))
