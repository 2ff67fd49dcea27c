"""The result of complete, fit and apply."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hirank._text import plural


@dataclass(frozen=True)
class RunResult:
    """Counts, errors and paths of a run; `summary` is that of the fit, if there was one."""

    rows: int
    columns: int
    missing: int
    imputed: int
    seconds: float
    output: str | None = None
    model: Path | None = None
    report: Path | None = None
    summary: dict[str, Any] | None = None

    @property
    def left_missing(self) -> int:
        """The number of missing values that were not imputed."""
        return self.missing - self.imputed

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is printed as JSON."""
        own = {name: value for name, value in vars(self).items() if name != "summary"}
        rates = {"left_missing": self.left_missing, "rows_per_second": self.rows / self.seconds}
        return {**(self.summary or {}), **own, **rates}

    def __str__(self) -> str:
        lines = []
        if self.output is None:  # of fit
            lines += [str(self.summary), ""]
        else:
            columns = plural(self.columns, "numeric column")
            lines.append(
                f"Imputed {self.imputed:,} of {plural(self.missing, 'missing value')} in "
                f"{plural(self.rows, 'row')} and {columns} ({self.seconds:.1f} s): {self.output}"
            )
            lines += self._errors()
        paths = {"Model": self.model, "Report": self.report}
        return "\n".join([*lines, *(f"{key}: {path}" for key, path in paths.items() if path)])

    def _errors(self) -> list[str]:
        lines, facts = [], self.summary or {}
        if facts.get("n_held_out"):
            lines.append(
                f"Error at {plural(facts['n_held_out'], 'held-out value')} (column mean = 1): "
                f"{facts['error']:.3f}; best linear method: {facts['linear_error']:.3f}."
            )
        if self.left_missing:
            lines.append(
                f"{plural(self.left_missing, 'value is', 'values are')} still missing: the column "
                "has no values, or the gap is longer than --max-gap."
            )
        return [*lines, facts["verdict"]] if facts else lines
