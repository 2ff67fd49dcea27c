"""A learned model apart from the estimator that learned it: arrays in, completed arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds
from hirank.core.objective import coordinates
from hirank.core.scaling import Scaling
from hirank.core.threads import Workers
from hirank.models.out_of_sample import ROUNDS, complete_samples
from hirank.optim.path import Setting
from hirank.warn import warn_user


class RowModel(Protocol):
    """What has been learned, as far as completing scaled rows needs it."""

    def complete(self, X: Array, observed: BoolArray) -> Array:
        """Fill rows, n x v, each on its own; every row has an observed and a missing entry."""
        ...


@dataclass(frozen=True)
class Dictionary:
    """Rows completed such that, seen through the kernel, they lie close to a dictionary's span."""

    D: Array  # r x v
    settings: tuple[Setting, ...]  # of the stages of the fit
    rounds: int = ROUNDS  # evaluations per stage for new samples
    bounds: Bounds | None = None  # of the fills, v features in scaled units

    def complete(self, X: Array, observed: BoolArray) -> Array:
        with Workers() as workers:
            return complete_samples(
                X,
                observed,
                self.D,
                self.settings,
                workers,
                rounds=self.rounds,
                bounds=self.bounds,
            )

    def coordinates(self, X: Array) -> Array:
        """Completed rows in coordinates of the dictionary's span, n x v -> n x r."""
        if not self.settings:  # no feature varies
            return np.zeros((len(X), len(self.D)))
        return coordinates(X, self.settings[-1].basis(self.D))


@dataclass(frozen=True)
class Fitted:
    """A dictionary with the features it is for. Nothing here changes after the fit."""

    nonempty: BoolArray  # which of the m input features had an observed entry: k of them
    scaling: Scaling  # of those k; v of them vary
    D: Array  # dictionary in scaled units, r x v
    settings: tuple[Setting, ...]  # of the stages of the fit
    rounds: int = ROUNDS  # evaluations per stage for new samples

    def complete(self, X: Array, observed: BoolArray, *, quiet: bool = False) -> Array:
        """Fill samples, n x m -> n x k, as `complete_rows`."""
        rows = Dictionary(self.D, self.settings, self.rounds)
        kept = self.nonempty
        return complete_rows(rows, X[:, kept], observed[:, kept], self.scaling, quiet=quiet)

    def dictionary(self) -> Array:
        """The dictionary in the units of the data, r x k."""
        return self.scaling.backward(self.D)


def complete_rows(
    rows: RowModel,
    X: Array,
    observed: BoolArray,
    scaling: Scaling,
    *,
    quiet: bool = False,
) -> Array:
    """Fill rows in the units of the data, n x k. Observed entries come back as they are.

    Rows without a value to go by get the means, with a warning unless `quiet`.
    """
    scaled, _, blank = fill_scaled(rows, X, observed, scaling)
    filled = scaling.backward(scaled)
    fill_blank(filled, blank, scaling, quiet=quiet)
    check_finite(filled, observed)
    return np.where(observed, X, filled.astype(X.dtype))


def fill_scaled(
    rows: RowModel, X: Array, observed: BoolArray, scaling: Scaling
) -> tuple[Array, BoolArray, BoolArray]:
    """Scaled rows, n x k -> n x v, with their fills, what they rest on, and which rest on nothing.

    The latter have no fills: they are zeros.
    """
    scaled = scaling.forward(np.where(observed, X, 0).astype(np.float64))
    # A wild value is no evidence, and has no place in a fill.
    seen = observed[:, scaling.varying] & scaling.inliers(X)
    blank = seen.sum(axis=1) == 0
    todo = ~seen.all(axis=1) & ~blank
    if todo.any():
        scaled[todo] = rows.complete(scaled[todo], seen[todo])
    return scaled, seen, blank


def check_finite(filled: Array, observed: BoolArray) -> None:
    """Raise if a row of n x k has an entry to fill, and is not finite."""
    lost = np.flatnonzero(~np.isfinite(filled).all(axis=1) & ~observed.all(axis=1))
    if len(lost):
        raise ValueError(
            f"No finite fill was found for {len(lost)} sample(s) (rows {_some(lost)}): they hold "
            "values far beyond those of the fit. Check them, or leave them out."
        )


def _some(rows: IntArray) -> str:
    return ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")


def fill_blank(filled: Array, blank: BoolArray, scaling: Scaling, *, quiet: bool = False) -> None:
    """Write the feature means over samples that nothing is known of, and warn."""
    if not blank.any() or not scaling.varying.any():
        return
    filled[blank] = scaling.mean
    if not quiet:
        warn_blank(blank)


def warn_blank(blank: BoolArray) -> None:
    """Tell which of n samples were filled with means."""
    rows = np.flatnonzero(blank)
    warn_user(
        f"{len(rows)} sample(s) have no observed entry to go by (rows {_some(rows)}). They were "
        "filled with the feature means; drop them if you do not want that."
    )
