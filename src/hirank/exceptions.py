"""Errors and warnings that carry data, and the reasons for which a fit stops.

Whoever catches one of these reads its attributes; nothing in hirank matches the text of a message.
The module imports neither NumPy nor scikit-learn, so that ``hirank --help`` is quick.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(eq=False)
class FileError(InputError):
    """A file that cannot be read: its path, and what is wrong with it."""

    path: Any
    problem: str

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


@dataclass(eq=False)
class EmptyRowsWarning(UserWarning):
    """Rows without a usable value, at positions `rows`, were imputed with column means."""

    rows: tuple[int, ...]

    def __str__(self) -> str:
        count = plural(len(self.rows), "row")
        return (
            f"Imputed {count} without observed values with column means (positions "
            f"{abbreviated(self.rows)})."
        )


@dataclass(eq=False)
class SkippedRowsWarning(UserWarning):
    """`count` rows were not learned from, for a `reason`."""

    count: int
    reason: str

    def __str__(self) -> str:
        return f"Skipped {plural(self.count, 'row')} in learning: {self.reason}"


@dataclass(eq=False)
class WarmupWarning(UserWarning):
    """`count` rows arrived before there was a model and were imputed with the means so far."""

    count: int

    def __str__(self) -> str:
        rows = plural(self.count, "row")
        return f"Imputed {rows} that arrived before the first fit with the column means so far."


@dataclass(eq=False)
class EmptyColumnsWarning(UserWarning):
    """Columns without any value stay empty."""

    columns: tuple[Any, ...]

    def __str__(self) -> str:
        return f"Left columns without any value empty: {abbreviated(self.columns, 20)}."


@dataclass(eq=False)
class NonNumericColumnsWarning(UserWarning):
    """Columns that are not numeric keep their missing values."""

    columns: tuple[Any, ...]

    def __str__(self) -> str:
        listed = abbreviated(self.columns, 20)
        return f"Left missing values in columns that are not numeric: {listed}."


@dataclass(eq=False)
class FeatureLimitWarning(UserWarning):
    """A stream has more features than `max_features`; `feature` is the first that is left out."""

    max_features: int
    feature: Any

    def __str__(self) -> str:
        return (
            f"The stream has more than max_features={self.max_features} features: {self.feature!r} "
            "and later ones are passed through and not learned from."
        )


@dataclass(eq=False)
class BoundsWarning(UserWarning):
    """`count` observed values of `columns` lie outside the bounds and are kept."""

    columns: tuple[Any, ...]
    count: int

    def __str__(self) -> str:
        return (
            f"Kept {plural(self.count, 'observed value')} outside the bounds, in columns "
            f"{abbreviated(self.columns)}. Only imputed values are limited. Check the values or "
            "widen the bounds."
        )


@dataclass(eq=False)
class RelaxationWarning(UserWarning):
    """A `relaxation` of at most 1: the steps of the paper need not lower the objective."""

    relaxation: float

    def __str__(self) -> str:
        return (
            f"relaxation={self.relaxation:g} is not above 1, so that Lemma 3 of Fan and Udell "
            "(2019), and Lemma 6 for streams, do not ensure that a step lowers the objective. Use "
            "a value above 1, such as 1.1."
        )


@dataclass(eq=False)
class TimeColumnWarning(UserWarning):
    """A time `column` cannot be used for a `reason`; rows are taken in the given order."""

    column: Any
    reason: str

    def __str__(self) -> str:
        return (
            f"Time column {self.column!r} was ignored: {self.reason}. The rows are taken in the "
            "given order, evenly spaced. Complete the column or drop those rows."
        )


@dataclass(eq=False)
class IrregularTimesWarning(UserWarning):
    """Rows of a stream whose times, in `column`, could not be used as they are."""

    column: Any
    missing: int = 0  # no time: taken as one usual step after the row before
    backward: int = 0  # earlier than the row before: the same
    repeated: int = 0  # the time of the row before: a tenth of a usual step
    far: int = 0  # more than 1000 usual steps after it: as 1000

    def __str__(self) -> str:
        found = {
            "without a time": self.missing,
            "earlier than the row before": self.backward,
            "with the same time as the row before": self.repeated,
            "after a gap of more than 1000 usual steps": self.far,
        }
        rows = ", ".join(f"{plural(n, 'row')} {what}" for what, n in found.items() if n)
        return (
            f"Time column {self.column!r}: {rows}. They were used as if close to the usual step. "
            "Sort the rows. If they are from several devices, name the column of these: groups."
        )


@dataclass(eq=False)
class GroupLimitWarning(UserWarning):
    """A stream has more groups than `limit`; the filters of the oldest are forgotten."""

    limit: int

    def __str__(self) -> str:
        return (
            f"The stream has more than {self.limit} groups. With each further one, the group "
            "without a row for the longest time is forgotten, and starts anew if it comes back. "
            "Split the groups among several streams to keep all."
        )


@dataclass(eq=False)
class FewEntriesWarning(UserWarning):
    """Too few entries are observed to hold any out, so no model was selected."""

    count: int

    def __str__(self) -> str:
        entries = plural(self.count, "entry is", "entries are")
        return (
            f"Only {entries} observed, too few to select a model: one strongly regularized "
            "Gaussian was fitted. Its imputed values are rough guesses."
        )


@dataclass(eq=False)
class NoModelWarning(UserWarning):
    """No model could be fitted, for `reasons` by family; column means were imputed."""

    reasons: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        listed = "; ".join(f"{family}: {reason}" for family, reason in self.reasons)
        return (
            f"Imputed column means, since no model could be fitted ({listed}). Check the table for "
            "extreme values, or use scale='robust'."
        )


@dataclass(eq=False)
class CompiledCoreWarning(UserWarning):
    """A compiled core is there but cannot be used, for a `reason`; `used` is what runs instead."""

    reason: str
    used: str

    def __str__(self) -> str:
        value = "off" if self.used == "NumPy" else self.used
        return (
            f"The compiled core {self.reason}. {self.used} is used instead, which is slower. "
            f"Install hirank again, or set HIRANK_COMPILED={value} to silence this warning."
        )


@dataclass(eq=False)
class ClusterVersionWarning(UserWarning):
    """Other versions of hirank than `version` run at the addresses of a Dask cluster in `found`."""

    version: str
    found: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"hirank {self.version} is installed here, and another version at "
            f"{abbreviated(self.found)}: results may differ, or the model may not be read. Install "
            f"hirank {self.version} on the whole cluster."
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
