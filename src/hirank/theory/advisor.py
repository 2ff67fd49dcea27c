"""Advice on a table with holes: what the theory asks for, and what the table itself says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from hirank._typing import Array, BoolArray
from hirank.core.scaling import Scaling
from hirank.estimators.functional import floats
from hirank.estimators.validation import check_missing_values, generator, is_missing
from hirank.theory.advice import Advice
from hirank.theory.counts import Counts, count
from hirank.theory.evidence import HeldOut, Trial, try_out
from hirank.theory.ranks import feature_dimension
from hirank.theory.rates import freedom
from hirank.theory.structure import KERNEL_DEGREE, Structure, measure

Name = int | str

MOST_SAMPLES = 1000
MOST_ENTRIES = 40_000
"""Larger tables are judged by a sample of their rows, which takes seconds."""
USEFUL = 0.9
"""Held-out error, relative to the feature means, above which a completion is not worth it."""
CLEARLY = 0.9
"""KFMC's error over the linear one below which the difference matters."""
EXACT = 0.02
"""Linear error below which nothing better is needed."""
GOOD = 0.35
"""Error below which a test has been passed though it is too hard."""
ON_CURVES = 0.3
"""Spread of pairs below which they lie on curves; noise of a tenth of their size gives 0.3."""
UNRELATED = 0.95
"""Error of a single feature from which on it is no better filled than by its mean."""
LEAST_REACH = 0.1
"""Part of the missing entries within reach below which the table can't be filled."""


def advise(
    X: Any,
    *,
    missing_values: float = np.nan,
    random_state: int | np.random.RandomState | None = None,
) -> Advice:
    """Tell whether a table with holes can be completed, and how.

    Known entries are hidden and filled again, by the best of many linear completions and by a quick
    KFMC; both are compared with feature means. On the completed table, the latent dimension and
    ranks are estimated, and from those the part of the entries that should be known, and the
    samples and features that have too few. The verdict follows the hidden entries; where they can't
    decide, it follows the counts.

    Parameters
    ----------
    X : array-like or data frame, n_samples x n_features
        Numeric columns of a data frame are used; others are named in the advice.
    missing_values : float, default=nan
        What stands for a missing value. NaN always does as well.
    random_state : int, RandomState or None, default=None
        Chooses which entries are hidden, and which samples are used if there are many.

    Returns
    -------
    advice : Advice
        A record; ``print`` it to read it in words.

    Notes
    -----
    A sample needs more known entries than there are latent dimensions (unless samples with fewer
    came out well in the test, as on a line, where one entry gives the other); a feature needs more
    than the rank of the table, since it combines as many functions of the latent variables.
    Entries are hidden at random: if values are missing for reasons that have to do with them, the
    true errors are larger.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.theory import advise
    >>> t = np.linspace(-1, 1, 80)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    >>> advice = advise(X, random_state=0)
    >>> advice.verdict, advice.latent_dimension
    ('kfmc', 1)
    >>> print(str(advice).splitlines()[1])
    Linear completion is not enough; KFMC can fill this table.
    """
    table = _Table.read(X, missing_values)
    rng = generator(random_state)
    trial = _tried(table, rng)
    structure = _structure(trial, rng)
    sample_needs, feature_needs = _needs(trial, structure)
    counts = count(table.used, sample_needs, feature_needs)
    held_out = None if trial is None else trial.held_out
    verdict = _verdict(held_out, counts.reachable)
    features = table.named(table.varying)
    return Advice(
        n_samples=len(table.values),
        n_features=table.values.shape[1],
        observed_rate=float(table.observed.mean()),
        verdict=verdict,
        kfmc_can=verdict == "kfmc" or (verdict == "linear" and _useful(held_out)),
        **_estimates(structure, table),
        held_out=held_out,
        reachable=counts.reachable,
        sample_needs=sample_needs,
        feature_needs=feature_needs,
        thin_samples=_fewer(range(len(table.values)), counts.thin_samples, table.used.sum(axis=1)),
        thin_features=_fewer(features, counts.thin_features, table.used.sum(axis=0)),
        empty_samples=tuple(np.flatnonzero(table.blank).tolist()),
        empty_features=table.named(~table.nonempty),
        constant_features=table.named(table.nonempty & ~table.varying),
        unrelated_features=_unrelated(trial, features),
        separate_groups=_groups(counts, features),
        ignored_columns=table.ignored,
    )


@dataclass(frozen=True)
class _Table:
    values: Array  # n x m
    observed: BoolArray  # n x m
    names: tuple[Name, ...]  # m
    ignored: tuple[str, ...]
    nonempty: BoolArray  # m
    varying: BoolArray  # m

    @classmethod
    def read(cls, X: Any, missing_values: float) -> _Table:
        check_missing_values(missing_values)
        values, names, ignored = _numbers(X)
        observed = ~is_missing(values, float(missing_values))
        if not observed.any():
            raise ValueError(
                "X has no observed entry: there is nothing to go by. "
                f"Check that missing_values={missing_values!r} is what you mean."
            )
        nonempty = observed.sum(axis=0) > 0
        varying = nonempty.copy()
        known = Scaling.measure(values[:, nonempty], observed[:, nonempty], scale="standard")
        varying[nonempty] = known.varying
        return cls(values, observed, names, ignored, nonempty, varying)

    @property
    def used(self) -> BoolArray:
        """What is observed of the features that vary, n x v."""
        return self.observed[:, self.varying]

    @property
    def blank(self) -> BoolArray:
        """Samples with nothing observed of them, n (or nothing at all, if no feature varies)."""
        counted = self.used if self.varying.any() else self.observed
        return counted.sum(axis=1) == 0

    def named(self, which: BoolArray) -> tuple[Name, ...]:
        return tuple(self.names[j] for j in np.flatnonzero(which).tolist())


def _numbers(X: Any) -> tuple[Array, tuple[Name, ...], tuple[str, ...]]:
    """The table as floats, n x m, the names of its columns, and those that are not numeric."""
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("This data frame is lazy: collect() it first.")
    if isinstance(frame, nw.DataFrame):
        numeric = [name for name in frame.columns if frame.get_column(name).dtype.is_numeric()]
        ignored = tuple(str(name) for name in frame.columns if name not in numeric)
        if not numeric:
            raise TypeError(f"No column is numeric: {list(ignored)}. Convert those with numbers.")
        X, names = (
            np.column_stack([floats(frame.get_column(name)) for name in numeric]),
            tuple(numeric),
        )
    else:
        names, ignored = None, ()
    values = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")
    return values, names or tuple(range(values.shape[1])), ignored


def _tried(table: _Table, rng: np.random.Generator) -> Trial | None:
    """Hide and fill, on so many samples as take seconds."""
    rows = np.flatnonzero(~table.blank)
    v = int(table.varying.sum())
    if v < 2:
        return None
    most = min(MOST_SAMPLES, max(200, MOST_ENTRIES // v))
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    used = table.used[rows]
    present = used.sum(axis=0) > 0  # few rows of many may miss a feature that is rarely known
    X = table.values[rows][:, table.varying]
    trial = try_out(X[:, present], used[:, present], rng)
    if trial is None or present.all():
        return trial
    error = np.full(v, np.nan)
    error[present] = trial.error_of_feature
    return replace(trial, error_of_feature=error)


def _structure(trial: Trial | None, rng: np.random.Generator) -> Structure | None:
    if trial is None:
        return None
    error = min(trial.held_out.linear_error, trial.held_out.kfmc_error)
    return measure(trial.completed, error, rng) if error < USEFUL else None


def _needs(trial: Trial | None, structure: Structure | None) -> tuple[int, int]:
    """Known entries that a sample and a feature must have; 1 if nothing is known of the table."""
    if trial is None or structure is None:
        return 1, 1
    sample_needs = structure.latent_dimension + 1
    while sample_needs > 1 and trial.error_of_thin(sample_needs) <= GOOD:
        sample_needs -= 1
    return sample_needs, structure.linear_rank + 1


def _verdict(held_out: HeldOut | None, reachable: float | None) -> str:
    if reachable is not None and reachable < LEAST_REACH:
        return "neither"
    if held_out is None:
        return "untested"
    linear, kfmc = held_out.linear_error, held_out.kfmc_error
    if not held_out.fair and linear > GOOD and held_out.pair_spread < ON_CURVES:
        return "kfmc"
    if min(linear, kfmc) > USEFUL:
        return "neither"
    better = kfmc < CLEARLY * linear and held_out.kfmc_gain > 1
    return "kfmc" if better and linear > EXACT else "linear"


def _useful(held_out: HeldOut | None) -> bool:
    return held_out is not None and held_out.kfmc_error <= USEFUL


def _estimates(structure: Structure | None, table: _Table) -> dict[str, Any]:
    """Ranks and the rates that follow from them."""
    if structure is None:
        fields = ("latent_dimension", "linear_rank", "feature_rank", "low_rank_rate", "kfmc_rate")
        return dict.fromkeys(fields)
    n, v = int((~table.blank).sum()), int(table.varying.sum())
    monomials = feature_dimension(v, kernel_degree=KERNEL_DEGREE)
    return {
        **asdict(structure),
        "low_rank_rate": freedom(structure.linear_rank, n, v),
        "kfmc_rate": freedom(structure.feature_rank, n, monomials) ** (1 / KERNEL_DEGREE),
    }


def _fewer(names: Iterable[Name], thin: BoolArray, numbers: NDArray[np.int_]) -> dict[Any, int]:
    """Names of those that have some known entries, but too few."""
    rows = zip(names, thin, numbers, strict=True)
    return {name: int(number) for name, is_thin, number in rows if is_thin and number}


def _unrelated(trial: Trial | None, features: Sequence[Name]) -> tuple[Name, ...]:
    """Features filled no better than by their mean, if that can be said of some only."""
    if trial is None:
        return ()
    unrelated = trial.error_of_feature >= UNRELATED
    if min(trial.held_out.linear_error, trial.held_out.kfmc_error) > USEFUL:
        return ()
    return tuple(features[j] for j in np.flatnonzero(unrelated).tolist())


def _groups(counts: Counts, features: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
    groups = [
        tuple(features[j] for j in np.flatnonzero(counts.group == number).tolist())
        for number in np.unique(counts.group)
    ]
    return tuple(groups) if len(groups) > 1 else ()
