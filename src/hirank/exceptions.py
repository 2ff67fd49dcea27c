"""Errors and warnings that carry data, and the reasons for which a fit stops.

Whoever catches one of these reads its attributes; nothing in hirank matches the text of a message.
The module imports neither NumPy nor scikit-learn, so that ``hirank --help`` is quick.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

from hirank._text import abbreviated, plural


class InputError(ValueError):
    """Data or a parameter that cannot be used; the message states what to change."""


class ParameterError(InputError):
    """A parameter whose value cannot be used.

    The error carries the name of the parameter, so that the command line can print the option that
    the user typed. `problem` may name further parameters in braces, which `related` lists.

    Examples
    --------
    >>> from hirank.exceptions import ParameterError
    >>> error = ParameterError("max_gap", "requires {time}.", "time")
    >>> str(error)
    'max_gap requires time.'
    >>> error.message(lambda name: "--" + name.replace("_", "-"))
    '--max-gap requires --time.'
    """

    def __init__(self, parameter: str, problem: str, *related: str) -> None:
        super().__init__(parameter, problem, *related)
        self.parameter, self.problem, self.related = parameter, problem, related

    def message(self, name: Callable[[str], str] = str) -> str:
        """Return the message with each parameter as `name` writes it."""
        text = f"{name(self.parameter)} {self.problem}"
        for other in self.related:
            text = text.replace(f"{{{other}}}", name(other))
        return text

    def __str__(self) -> str:
        return self.message()


class FileError(InputError):
    """A file that cannot be read: its path, and what is wrong with it."""

    def __init__(self, path: Any, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class ModelFileError(FileError):
    """A file that is not a model, is damaged, or was written by a later version."""


class OutputError(FileError):
    """A file that cannot be written: its path, and why."""


class OutputExistsError(OutputError):
    """An output file that already exists."""

    def __init__(self, path: Any, remedy: str = "Pass --force to overwrite it.") -> None:
        super().__init__(path, remedy)

    def __str__(self) -> str:
        return f"{self.path} already exists. {self.problem}"


class EmptyRowsWarning(UserWarning):
    """Rows without a usable value, at positions `rows`, were imputed with column means."""

    def __init__(self, rows: tuple[int, ...]) -> None:
        super().__init__(rows)
        self.rows = rows

    def __str__(self) -> str:
        count = plural(len(self.rows), "row")
        return (
            f"Imputed {count} without observed values with column means (positions "
            f"{abbreviated(self.rows)})."
        )


class SkippedRowsWarning(UserWarning):
    """`count` rows were not learned from, for a `reason`."""

    def __init__(self, count: int, reason: str) -> None:
        super().__init__(count, reason)
        self.count, self.reason = count, reason

    def __str__(self) -> str:
        return f"Skipped {plural(self.count, 'row')} in learning: {self.reason}"


class WarmupWarning(UserWarning):
    """`count` rows arrived before there was a model and were imputed with the means so far."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count

    def __str__(self) -> str:
        rows = plural(self.count, "row")
        return f"Imputed {rows} that arrived before the first fit with the column means so far."


class EmptyColumnsWarning(UserWarning):
    """Columns without any value stay empty."""

    def __init__(self, columns: tuple[Any, ...]) -> None:
        super().__init__(columns)
        self.columns = columns

    def __str__(self) -> str:
        return f"Left columns without any value empty: {abbreviated(self.columns, 20)}."


class NonNumericColumnsWarning(UserWarning):
    """Columns that are not numeric keep their missing values."""

    def __init__(self, columns: tuple[Any, ...]) -> None:
        super().__init__(columns)
        self.columns = columns

    def __str__(self) -> str:
        listed = abbreviated(self.columns, 20)
        return f"Left missing values in columns that are not numeric: {listed}."


class FeatureLimitWarning(UserWarning):
    """A stream has more features than `max_features`; `feature` is the first that is left out."""

    def __init__(self, max_features: int, feature: Any) -> None:
        super().__init__(max_features, feature)
        self.max_features, self.feature = max_features, feature

    def __str__(self) -> str:
        return (
            f"The stream has more than max_features={self.max_features} features: {self.feature!r} "
            "and later ones are passed through and not learned from."
        )


class BoundsWarning(UserWarning):
    """`count` observed values of `columns` lie outside the bounds and are kept."""

    def __init__(self, columns: tuple[Any, ...], count: int) -> None:
        super().__init__(columns, count)
        self.columns, self.count = columns, count

    def __str__(self) -> str:
        return (
            f"Kept {plural(self.count, 'observed value')} outside the bounds, in columns "
            f"{abbreviated(self.columns)}. Only imputed values are limited. Check the values or "
            "widen the bounds."
        )


class TimeColumnWarning(UserWarning):
    """A time `column` cannot be used for a `reason`; rows are taken in the given order."""

    def __init__(self, column: Any, reason: str) -> None:
        super().__init__(column, reason)
        self.column, self.reason = column, reason

    def __str__(self) -> str:
        return (
            f"Time column {self.column!r} was ignored: {self.reason}. The rows are taken in the "
            "given order, evenly spaced. Complete the column or drop those rows."
        )


class FewEntriesWarning(UserWarning):
    """Too few entries are observed to hold any out, so no model was selected."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count

    def __str__(self) -> str:
        entries = plural(self.count, "entry is", "entries are")
        return (
            f"Only {entries} observed, too few to select a model: one strongly regularized "
            "Gaussian was fitted. Its imputed values are rough guesses."
        )


class NoModelWarning(UserWarning):
    """No model could be fitted, for `reasons` by family; column means were imputed."""

    def __init__(self, reasons: tuple[tuple[str, str], ...]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        listed = "; ".join(f"{family}: {reason}" for family, reason in self.reasons)
        return (
            f"Imputed column means, since no model could be fitted ({listed}). Check the table for "
            "extreme values, or use scale='robust'."
        )


class StopReason(Enum):
    """Why a fit stopped."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    CALLBACK = "callback"
    DIVERGED = "diverged"
    NOTHING_TO_FIT = "nothing_to_fit"


_PASSED_OVER = ("hirank.", "river.", "sklearn.")


def warn(warning: Warning) -> None:
    """Issue a warning at the nearest caller outside hirank, scikit-learn and river."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PASSED_OVER):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
